/** Holds answers of the HTTP API against its OpenAPI document. */
import { Validator } from '@cfworker/json-schema';
import { openApiDocument } from '../../api/openapi/openapi.ts';

// biome-ignore lint/suspicious/noExplicitAny: a document
type Json = any;

interface Answered {
  status: number;
  headers: Headers;
  /** Parsed JSON, if the answer has a body of JSON. */
  body: unknown;
}

const document = openApiDocument() as Json;
const operations = Object.entries(document.paths as Json).map(([path, methods]) => ({
  pattern: new RegExp(`^${path.replace(/\{path\}$/, '.+').replaceAll(/\{\w+\}/g, '[^/]+')}$`),
  methods: methods as Json,
}));
const validators = new Map<string, Validator>();

/** Returns what the document does not say of an answer. Pages and methods that it does not have are not its business. */
export function undocumented(method: string, path: string, { status, headers, body }: Answered): string[] {
  const [page = ''] = path.split('?');
  const operation = operations.find(({ pattern }) => pattern.test(page))?.methods[method.toLowerCase()];
  if (!operation) return [];
  const listed = operation.responses[status];
  if (!listed) return [`status ${status} is not listed`];
  const response = resolve(listed);
  const missing = Object.entries(response.headers ?? {})
    .filter(([name, header]) => resolve(header).required && !headers.has(name))
    .map(([name]) => `status ${status} comes without ${name}`);
  const codes: string[] | undefined = response['x-problem-codes'];
  const { code } = (body ?? {}) as { code?: string };
  if (codes && method !== 'HEAD' && !codes.includes(code ?? '')) missing.push(`code ${code} is not listed`);
  return [...missing, ...bodyProblems(response.content, headers, body)];
}

function bodyProblems(content: Json, headers: Headers, body: unknown): string[] {
  const [type = ''] = (headers.get('content-type') ?? '').split(';');
  if (body === undefined || content === undefined || 'application/octet-stream' in content) return [];
  if (!content[type]) return [`content of the type ${type} is not listed`];
  return unlikeSchema(content[type].schema, body);
}

/** Returns how a value differs from the schema of this name. */
export const unlike = (name: string, value: unknown): string[] =>
  unlikeSchema({ $ref: `#/components/schemas/${name}` }, value);

function unlikeSchema(schema: Json, value: unknown): string[] {
  const key = JSON.stringify(schema);
  const validator = validators.get(key) ?? new Validator({ ...schema, components: document.components }, '2020-12');
  validators.set(key, validator);
  const { valid, errors } = validator.validate(value);
  return valid ? [] : errors.map(({ instanceLocation, error }) => `${instanceLocation}: ${error}`);
}

function resolve(value: Json): Json {
  if (!value.$ref) return value;
  const steps: string[] = value.$ref.replace('#/', '').split('/');
  return steps.reduce((found: Json, step) => found[step], document);
}
