import { invalid } from '../../fields.ts';
import { type ApiObject, at } from '../../object.ts';
import { age } from '../duration.ts';
import { builtin, field, fieldColumn, text } from './define.ts';
import { builtinSchema } from './schemas.ts';

/** When an event was last seen: by series, by its own times, by its creation. */
function lastSeen(event: ApiObject): unknown {
  return (
    at(event, 'series', 'lastObservedTime') ??
    event.lastTimestamp ??
    event.eventTime ??
    event.firstTimestamp ??
    event.metadata.creationTimestamp
  );
}

const involved = (event: ApiObject) =>
  `${text(at(event, 'involvedObject', 'kind')).toLowerCase()}/${text(at(event, 'involvedObject', 'name'))}`;

export const events = builtin({
  plural: 'events',
  kind: 'Event',
  schema: builtinSchema('CoreV1Event'),
  shortNames: ['ev'],
  selectable: {
    'involvedObject.kind': field('involvedObject', 'kind'),
    'involvedObject.namespace': field('involvedObject', 'namespace'),
    'involvedObject.name': field('involvedObject', 'name'),
    'involvedObject.uid': field('involvedObject', 'uid'),
    'involvedObject.apiVersion': field('involvedObject', 'apiVersion'),
    'involvedObject.resourceVersion': field('involvedObject', 'resourceVersion'),
    'involvedObject.fieldPath': field('involvedObject', 'fieldPath'),
    reason: field('reason'),
    type: field('type'),
    reportingComponent: (event) => text(event.reportingComponent) || text(at(event, 'source', 'component')),
    source: (event) => text(at(event, 'source', 'component')) || text(event.reportingComponent),
  },
  columns: [
    { name: 'Last Seen', type: 'string', cell: (event, now) => age(lastSeen(event), now) },
    fieldColumn('Type', 'type'),
    fieldColumn('Reason', 'reason'),
    { name: 'Object', type: 'string', cell: involved },
    { name: 'Source', type: 'string', priority: 1, cell: (event) => text(at(event, 'source', 'component')) },
    { name: 'Message', type: 'string', cell: (event) => text(event.message).trim() },
    { name: 'Count', type: 'string', priority: 1, cell: (event) => text(event.count ?? 1) },
    { name: 'Name', type: 'string', format: 'name', priority: 1, cell: (event) => event.metadata.name },
  ],
  validate(event, old) {
    const namespace = at(event, 'involvedObject', 'namespace');
    if (old || !namespace || namespace === event.metadata.namespace) return [];
    return [invalid('involvedObject.namespace', namespace, 'does not match event.namespace')];
  },
});
