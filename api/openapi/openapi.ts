/** OpenAPI 3.1 document, made from the routes and schemas that the server checks requests with. */
import type * as z from 'zod';
import { type EventType, eventData } from '../../core/follow/events.ts';
import { VERSION } from '../../core/program/version.ts';
import type { EventStream, Route } from '../route.ts';
import { routesByTag } from '../routes/index.ts';
import { formatEvent } from '../streams/event-stream.ts';
import { eventExamples } from './event-examples.ts';
import { inline, type Json, namedSchemas, ref, schemaOf } from './json-schema.ts';
import { eventSchemaName } from './names.ts';
import { idempotencyKey, noBody } from './schemas.ts';

/** Content of any type. A file's answer may have a narrower type than this. */
const BYTES = { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } };

/** Types of events in each stream. */
const EVENTS: Record<EventStream, readonly EventType[]> = {
  SessionEvents: ['session', 'artifacts', 'turn', 'approval', 'usage', 'agent', 'log', 'dropped', 'deleted'],
  NamespaceEvents: ['session', 'artifacts', 'turn', 'approval', 'usage', 'deleted'],
};

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
      schemas: namedSchemas(),
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
  if (schema === 'SessionEvents' || schema === 'NamespaceEvents') return { content: eventStream(schema) };
  if (schema === 'File') return { content: BYTES };
  if (schema === 'Text') return { content: { 'text/plain': { schema: { type: 'string' } } } };
  return { content: json(schema ? schemaOf(schema) : {}) };
}

function eventStream(name: EventStream): Json {
  const examples = EVENTS[name].map((type) => {
    const { id, event } = eventExamples[type];
    const ofStream = name === 'SessionEvents' ? id : id.split('.').slice(0, 2).join('.');
    return [type, { summary: eventData[type].description, value: formatEvent({ id: ofStream, event }) }];
  });
  const types = EVENTS[name].map((type) => `${type}: ${eventSchemaName(type)}`).join(', ');
  const description = `Server-sent events. The schema of the data by the event’s type: ${types}.`;
  return { 'text/event-stream': { schema: { type: 'string', description }, examples: Object.fromEntries(examples) } };
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
