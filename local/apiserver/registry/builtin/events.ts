import { age } from '../../../../core/table/age.ts';
import { type FieldError, invalid, required } from '../../fields.ts';
import { type ApiObject, at } from '../../object.ts';
import { qualifiedNameErrors } from '../names.ts';
import { builtin, field, fieldColumn, text } from './define.ts';
import { builtinSchema } from './schemas.ts';

/** Returns the time when an event was last seen: by series, by its own times, by its creation. */
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
  prepareCreate: nullTime,
  prepareUpdate: nullTime,
  validate: eventErrors,
});

/** Sets eventTime to null in an event of the old form. */
function nullTime(event: ApiObject): void {
  event.eventTime ??= null;
}

const maxText = 1024;

function eventErrors(event: ApiObject): FieldError[] {
  const errors: FieldError[] = [];
  const namespace = text(at(event, 'involvedObject', 'namespace'));
  const own = event.metadata.namespace ?? '';
  // Events about cluster-scoped objects are in `default`.
  const fits = namespace === '' ? own === 'default' : namespace === own || event.eventTime;
  if (!fits) errors.push(invalid('involvedObject.namespace', namespace, 'does not match event.namespace'));
  if (!event.eventTime) return errors;
  const component = text(event.reportingComponent);
  if (!component) errors.push(required('reportingComponent'));
  errors.push(...qualifiedNameErrors(component).map((message) => invalid('reportingComponent', component, message)));
  for (const name of ['reportingInstance', 'action', 'reason']) if (!event[name]) errors.push(required(name));
  if (text(event.message).length > maxText) {
    errors.push(invalid('message', '', `can have at most ${maxText} characters`));
  }
  return errors;
}
