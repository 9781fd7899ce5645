/** Streams of events in the document. */
import { type EventType, eventData } from '../../core/follow/events.ts';
import type { EventStream } from '../route.ts';
import { formatEvent } from '../streams/event-stream.ts';
import { eventExamples } from './event-examples.ts';
import { type Json, ref } from './json-schema.ts';
import { eventSchemaName } from './names.ts';

/** Types of events in each stream, and the schema of one of its events. */
const STREAMS: Record<EventStream, { name: string; types: readonly EventType[] }> = {
  SessionEvents: {
    name: 'SessionStreamEvent',
    types: ['session', 'artifacts', 'turn', 'approval', 'usage', 'agent', 'log', 'dropped', 'deleted'],
  },
  NamespaceEvents: {
    name: 'NamespaceStreamEvent',
    types: ['session', 'artifacts', 'turn', 'approval', 'usage', 'deleted'],
  },
};

const messageName = (type: EventType) => `${eventSchemaName(type)}Message`;

/** Returns the schemas of server-sent events, by name. The data of an event is text, whose content has a schema of its own. */
export function streamSchemas(): Json {
  const messages = Object.entries(eventData).map(([type, { description }]) => {
    const data = {
      type: 'string',
      contentMediaType: 'application/json',
      contentSchema: ref(eventSchemaName(type as EventType)),
    };
    return [
      messageName(type as EventType),
      {
        type: 'object',
        description,
        properties: { id: { type: 'string' }, event: { type: 'string', const: type }, data },
        required: ['id', 'event', 'data'],
      },
    ];
  });
  const unions = Object.values(STREAMS).map(({ name, types }) => [
    name,
    { description: 'An event of the stream.', oneOf: types.map((type) => ref(messageName(type))) },
  ]);
  return Object.fromEntries([...messages, ...unions]);
}

/** Returns the content of an answer that is a stream. `itemSchema` is of OpenAPI 3.2; readers of 3.1 leave it alone. */
export function streamContent(stream: EventStream): Json {
  const { name, types } = STREAMS[stream];
  const examples = types.map((type) => {
    const { id, event } = eventExamples[type];
    const ofStream = stream === 'SessionEvents' ? id : id.split('.').slice(0, 2).join('.');
    return [type, { summary: eventData[type].description, value: formatEvent({ id: ofStream, event }) }];
  });
  const description = `Server-sent events; each is a ${name}.`;
  return {
    'text/event-stream': {
      schema: { type: 'string', description },
      itemSchema: ref(name),
      examples: Object.fromEntries(examples),
    },
  };
}
