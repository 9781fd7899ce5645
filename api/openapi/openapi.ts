/** OpenAPI 3.1 document, made from the routes and schemas that the server checks requests with. */
import type * as z from 'zod';
import { VERSION } from '../../core/program/version.ts';
import { PROBLEMS, type ProblemCode } from '../problems/problems.ts';
import type { ResponseInfo, Route } from '../route.ts';
import { routesByTag } from '../routes/index.ts';
import { byStatus, codesOf } from './codes.ts';
import { streamContent, streamSchemas } from './event-streams.ts';
import { type AnswerHeader, headersOf, namedHeaders } from './headers.ts';
import { inline, type Json, namedSchemas, ref, schemaOf } from './json-schema.ts';
import { idempotencyKey, noBody } from './schemas.ts';

/** Headers of every answer. */
const ALWAYS: readonly AnswerHeader[] = ['Berth-Version'];

/** Content of any type. A file's answer may have a narrower type than this. */
const BINARY = { type: 'string', format: 'binary' };
const BYTES = { 'application/octet-stream': { schema: BINARY } };

export function openApiDocument(): Json {
  const paths: Record<string, Json> = {};
  for (const [tag, routes] of Object.entries(routesByTag)) {
    for (const route of routes) {
      paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operation(route, tag) };
    }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Berth',
      version: VERSION,
      description:
        'Sessions, turns and runs over HTTP, on the same resources that kubectl shows. Every right is one of the cluster’s own RBAC on berth.dev. The header Berth-Version of every answer is the release of the server, as the version of this document is. Clients ignore fields of answers that they do not know, and take values that an x-extensible-enum does not list: a later release may have more of both.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    tags: Object.keys(routesByTag).map((name) => ({ name })),
    security: [{ bearer: [] }],
    paths,
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description: 'A token of the cluster, issued for the audience berth.',
        },
      },
      schemas: { ...namedSchemas(), ...streamSchemas() },
      headers: namedHeaders(),
      responses: problemResponses(),
    },
  };
}

function operation(route: Route, tag: string): Json {
  const rights = route.rights
    .map(({ verb, resource, subresource }) => `${verb} ${resource}${subresource ? `/${subresource}` : ''}`)
    .join(', ');
  const responses: Json = {};
  for (const [status, response] of Object.entries(route.responses)) {
    const headers = headersOf([...ALWAYS, 'X-Request-Id', ...(response.headers ?? [])]);
    const body = route.method === 'HEAD' ? {} : content(status, response);
    // OpenAPI has no word for trailers.
    const trailers = response.trailers && { 'x-trailers': headersOf(response.trailers) };
    responses[status] = { description: response.description, headers, ...trailers, ...body };
  }
  for (const [status, codes] of byStatus(codesOf(route))) responses[status] = problemRef(status, codes);
  return {
    tags: [tag],
    operationId: route.operationId,
    summary: route.summary,
    description: `${route.description ? `${route.description} ` : ''}Takes the right to ${rights}.`,
    parameters: [
      ...parameters(route.params, 'path'),
      ...parameters(route.query, 'query'),
      ...(route.creates ? [header('Idempotency-Key', idempotencyKey)] : []),
      ...Object.entries(route.headers?.shape ?? {}).map(([name, field]) => header(name, field as z.ZodType)),
    ],
    ...(route.body && route.body !== noBody
      ? { requestBody: { required: !route.body.safeParse(undefined).success, content: json(schemaOf(route.body)) } }
      : {}),
    ...(route.takesBytes ? { requestBody: { required: true, content: BYTES } } : {}),
    responses: { ...responses, default: problemRef('Problem') },
  };
}

function content(status: string, { schema, also = {} }: ResponseInfo): Json {
  if (status === '101' || status === '204' || status === '304') return {};
  if (schema === 'SessionEvents' || schema === 'NamespaceEvents') return { content: streamContent(schema) };
  if (schema === 'File') {
    const others = Object.entries(also).map(([type, other]) => [
      type,
      { schema: other === 'File' ? BINARY : { oneOf: other.map(schemaOf) } },
    ]);
    return { content: { ...BYTES, ...Object.fromEntries(others) } };
  }
  if (schema === 'Text') return { content: { 'text/plain': { schema: { type: 'string' } } } };
  return { content: json(schema ? schemaOf(schema) : {}) };
}

/** Headers of problems by their status. What is no request, or has no end of its head, has no id. */
const PROBLEM_HEADERS: Record<number, readonly AnswerHeader[]> = {
  400: ['X-Request-Id?'],
  401: ['X-Request-Id', 'WWW-Authenticate'],
  408: ['X-Request-Id?'],
  409: ['X-Request-Id', 'Retry-After?'],
  416: ['X-Request-Id', 'Content-Range'],
  426: ['X-Request-Id', 'Upgrade'],
  429: ['X-Request-Id', 'Retry-After'],
  431: ['X-Request-Id?'],
  503: ['X-Request-Id', 'Retry-After'],
};

const problemKey = (status: number, codes: readonly ProblemCode[]) => [status, ...codes].join('.');

/** Returns the reference to the answer with one of these codes. Operations whose codes are the same share it. */
const problemRef = (status: number | 'Problem', codes: readonly ProblemCode[] = []): Json => ({
  $ref: `#/components/responses/${status === 'Problem' ? status : problemKey(status, codes)}`,
});

/** Returns the problems that operations refer to: one for each list of codes with a status, and one for what is between. */
function problemResponses(): Json {
  const content = { 'application/problem+json': { schema: ref('Problem') } };
  const named: Json = {
    Problem: {
      description: 'Another answer than those listed, of a later release or of a proxy. The code says what it is.',
      headers: { 'Retry-After': { $ref: '#/components/headers/Retry-After.optional' } },
      content,
    },
  };
  for (const route of Object.values(routesByTag).flat()) {
    for (const [status, codes] of byStatus(codesOf(route))) {
      named[problemKey(status, codes)] = {
        description: codes.map((code) => `${code}: ${PROBLEMS[code][1]}`).join(' '),
        headers: headersOf([...ALWAYS, ...(PROBLEM_HEADERS[status] ?? ['X-Request-Id'])]),
        content,
        'x-problem-codes': codes,
      };
    }
  }
  return named;
}

function parameters(schema: z.ZodObject, where: 'path' | 'query'): Json[] {
  return Object.entries(schema.shape).map(([name, field]) => {
    const { description, ...rest } = inline(field as z.ZodType);
    const required = where === 'path' ? { required: true } : {};
    return { name, in: where, ...required, ...(description ? { description } : {}), schema: rest };
  });
}

function header(name: string, field: z.ZodType): Json {
  const { description, ...schema } = inline(field);
  return { name, in: 'header', description, schema };
}

const json = (schema: Json): Json => ({ 'application/json': { schema } });
