/** OpenAPI 3.1 document, made from the routes and schemas that the server checks requests with. */
import * as z from 'zod';
import { type EventType, eventData } from '../../core/follow/events.ts';
import { VERSION } from '../../core/program/version.ts';
import { problemSchema } from '../problems/problems.ts';
import type { EventStream, Route } from '../route.ts';
import { routes } from '../routes/index.ts';
import { formatEvent } from '../streams/event-stream.ts';
import { eventExamples } from './event-examples.ts';
import {
  approval,
  approvalCreate,
  approvalList,
  artifactList,
  command,
  commandCreate,
  commandList,
  commandListed,
  commandSignal,
  idempotencyKey,
  run,
  runCreate,
  session,
  sessionCreate,
  sessionList,
  suspendBody,
  turn,
  turnCreate,
  turnList,
} from './schemas.ts';

type Json = Record<string, unknown>;

/** Schemas with a name of their own. A request may leave out a field with a default; an answer always has it. */
const inputs = z.registry<{ id: string }>();
inputs.add(sessionCreate, { id: 'SessionCreate' });
inputs.add(turnCreate, { id: 'TurnCreate' });
inputs.add(approvalCreate, { id: 'ApprovalCreate' });
inputs.add(runCreate, { id: 'RunCreate' });
inputs.add(suspendBody, { id: 'Suspend' });
inputs.add(commandCreate, { id: 'CommandCreate' });
inputs.add(commandSignal, { id: 'CommandSignal' });
const outputs = z.registry<{ id: string }>();
outputs.add(session, { id: 'Session' });
outputs.add(sessionList, { id: 'SessionList' });
outputs.add(turn, { id: 'Turn' });
outputs.add(turnList, { id: 'TurnList' });
outputs.add(approval, { id: 'Approval' });
outputs.add(approvalList, { id: 'ApprovalList' });
outputs.add(artifactList, { id: 'ArtifactList' });
outputs.add(run, { id: 'Run' });
outputs.add(command, { id: 'Command' });
outputs.add(commandListed, { id: 'CommandListed' });
outputs.add(commandList, { id: 'CommandList' });
outputs.add(problemSchema, { id: 'Problem' });
const schemaName = (type: string) => `${type[0]?.toUpperCase()}${type.slice(1)}Event`;
for (const [type, schema] of Object.entries(eventData)) outputs.add(schema, { id: schemaName(type) });

/** Content of any type. */
const BYTES = { '*/*': { schema: { type: 'string', format: 'binary' } } };

/** Types of events in each stream. */
const EVENTS: Record<EventStream, readonly EventType[]> = {
  SessionEvents: ['session', 'artifacts', 'turn', 'approval', 'usage', 'agent', 'log', 'dropped', 'deleted'],
  NamespaceEvents: ['session', 'artifacts', 'turn', 'approval', 'usage', 'deleted'],
};

export function openApiDocument(): Json {
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operation(route) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Berth',
      version: VERSION,
      description:
        'Sessions, turns and runs over HTTP, on the same resources that kubectl shows. Every right is one of the cluster’s own RBAC on berth.dev. The header Berth-Version of every answer is the release of the server, as the version of this document is.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
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
      schemas: { ...registered(inputs, 'input'), ...registered(outputs, 'output') },
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

function operation(route: Route): Json {
  const rights = route.rights
    .map(({ verb, resource, subresource }) => `${verb} ${resource}${subresource ? `/${subresource}` : ''}`)
    .join(', ');
  const responses: Json = {};
  for (const [status, { description, schema }] of Object.entries(route.responses)) {
    responses[status] = { description, ...content(status, schema) };
  }
  return {
    operationId: route.operationId,
    summary: route.summary,
    description: `${route.description ? `${route.description} ` : ''}Takes the right to ${rights}.`,
    parameters: [
      ...parameters(route.params, 'path'),
      ...parameters(route.query, 'query'),
      ...(route.creates ? [header('Idempotency-Key', idempotencyKey)] : []),
      ...Object.entries(route.headers?.shape ?? {}).map(([name, field]) => header(name, field as z.ZodType)),
    ],
    ...(route.body
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
  const types = EVENTS[name].map((type) => `${type}: ${schemaName(type)}`).join(', ');
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

function schemaOf(schema: z.ZodType): Json {
  const name = (inputs.get(schema) ?? outputs.get(schema))?.id;
  return name ? ref(name) : inline(schema);
}

function registered(registry: typeof inputs, io: 'input' | 'output'): Json {
  const uri = (id: string) => `#/components/schemas/${id}`;
  const { schemas } = z.toJSONSchema(registry, { ...options(io), uri });
  return Object.fromEntries(Object.entries(schemas).map(([name, { $id, $schema, ...schema }]) => [name, schema]));
}

function inline(schema: z.ZodType): Json {
  const { $schema, ...rest } = z.toJSONSchema(schema, options('input'));
  return rest;
}

function options(io: 'input' | 'output') {
  return {
    target: 'draft-2020-12',
    io,
    unrepresentable: 'any',
    override: ({ jsonSchema }: { jsonSchema: Json }) => {
      // Extensions are for the Kubernetes API server, which checks them itself.
      for (const key of Object.keys(jsonSchema)) {
        if (key.startsWith('x-kubernetes-') || key === 'nullable') delete jsonSchema[key];
      }
      // Answers allow unknown fields, because a later version may add some.
      if (io === 'output' && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
    },
  } as const;
}

const ref = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });
const json = (schema: Json): Json => ({ 'application/json': { schema } });
