/** OpenAPI 3.1 document, made from the routes and schemas that the server checks requests with. */
import type * as z from 'zod';
import { VERSION } from '../../core/program/version.ts';
import type { Route } from '../route.ts';
import { routesByTag } from '../routes/index.ts';
import { streamContent, streamSchemas } from './event-streams.ts';
import { inline, type Json, namedSchemas, ref, schemaOf } from './json-schema.ts';
import { idempotencyKey, noBody } from './schemas.ts';

/** Content of any type. A file's answer may have a narrower type than this. */
const BYTES = { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } };

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
      responses: {
        Problem: {
          description: 'Anything but success; the code says what.',
          headers: {
            'Retry-After': {
              description: 'Seconds until the request is worth another try; with 429 and 503.',
              schema: { type: 'integer' },
            },
          },
          content: { 'application/problem+json': { schema: ref('Problem') } },
        },
      },
    },
  };
}

function operation(route: Route, tag: string): Json {
  const rights = route.rights
    .map(({ verb, resource, subresource }) => `${verb} ${resource}${subresource ? `/${subresource}` : ''}`)
    .join(', ');
  const responses: Json = {};
  for (const [status, { description, schema }] of Object.entries(route.responses)) {
    responses[status] = { description, ...content(status, schema) };
  }
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
    responses: { ...responses, default: { $ref: '#/components/responses/Problem' } },
  };
}

function content(status: string, schema: Route['responses'][number]['schema']): Json {
  if (status === '101' || status === '204' || status === '304') return {};
  if (schema === 'SessionEvents' || schema === 'NamespaceEvents') return { content: streamContent(schema) };
  if (schema === 'File') return { content: BYTES };
  if (schema === 'Text') return { content: { 'text/plain': { schema: { type: 'string' } } } };
  return { content: json(schema ? schemaOf(schema) : {}) };
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
