import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { table } from '../../../cli/print/table.ts';
import { customResourceDefinition, kinds } from '../../../core/resources/crd.ts';
import { columns } from '../../../core/table/columns.ts';
import { applyDefaults } from '../../../local/apiserver/validation/shape.ts';

interface Served {
  openAPIV3Schema: Parameters<typeof applyDefaults>[1];
}

const NOW = Date.parse('2026-01-01T12:00:00Z');
const ago = (ms: number) => new Date(NOW - ms).toISOString();
const [SECOND, MINUTE, HOUR] = [1_000, 60_000, 3_600_000];

/** The table of `kubectl get`, without the columns of `-o wide`. */
function shown(plural: string, objects: object[], wide = false): string {
  const kind = kinds.find((one) => one.plural === plural);
  const all = columns({ additionalPrinterColumns: kind?.columns ?? [] }).filter(
    ({ priority = 0 }) => wide || priority === 0,
  );
  const rows = objects.map((object) => all.map(({ cell }) => String(cell(object as never, NOW) ?? '')));
  return table([all.map(({ name }) => name.toUpperCase()), ...rows]);
}

const lines = (text: string) => text.trimEnd().split('\n');

function session(name: string, ageMs: number, status: { phase: string; sinceMs: number } & Record<string, unknown>) {
  const { sinceMs, ...rest } = status;
  return {
    metadata: { name, creationTimestamp: ago(ageMs) },
    spec: { class: 'default' },
    status: { ...rest, phaseSince: ago(sinceMs) },
  };
}
const turns = (total: number, phase: string) => ({ turns: { total }, lastTurn: { phase } });

const SESSIONS = [
  session('audit', 4 * MINUTE, { phase: 'Queued', reason: 'AtCapacity', sinceMs: 4 * MINUTE, turns: { total: 0 } }),
  session('broken-image', 9 * MINUTE, { phase: 'Starting', reason: 'ImageUnavailable', sinceMs: 9 * MINUTE }),
  session('coder', 26 * HOUR, { phase: 'Running', sinceMs: 12 * SECOND, ...turns(31, 'Succeeded') }),
  session('deploy', 3 * HOUR, { phase: 'AwaitingApproval', sinceMs: 40 * MINUTE, ...turns(2, 'Succeeded') }),
  session('map-5f0c9a1b-0123456789ab', HOUR, {
    phase: 'Finished',
    reason: 'AgentFailed',
    sinceMs: MINUTE,
    ...turns(1, 'Failed'),
  }),
  session('notes', 72 * HOUR, { phase: 'Suspended', sinceMs: 50 * HOUR, ...turns(7, 'Succeeded') }),
  session('run-x9kpzpbp', 5 * MINUTE, { phase: 'Finished', sinceMs: 5 * MINUTE, ...turns(1, 'Succeeded') }),
];

describe('kubectl get', () => {
  test('tells of sessions what each does, why where that is not plain, since when, and how its last turn ended', () => {
    assert.deepEqual(lines(shown('sessions', SESSIONS)), [
      'NAME                        PHASE              REASON             SINCE   TURNS   LAST        AGE',
      'audit                       Queued             AtCapacity         4m      0                   4m',
      'broken-image                Starting           ImageUnavailable   9m                          9m',
      'coder                       Running                               12s     31      Succeeded   26h',
      'deploy                      AwaitingApproval                      40m     2       Succeeded   3h',
      'map-5f0c9a1b-0123456789ab   Finished           AgentFailed        60s     1       Failed      60m',
      'notes                       Suspended                             2d2h    7       Succeeded   3d',
      'run-x9kpzpbp                Finished                              5m      1       Succeeded   5m',
    ]);
  });

  test('fits sessions into a terminal of 100 columns', () => {
    for (const line of lines(shown('sessions', SESSIONS))) assert.ok(line.length <= 100, line);
  });

  test('tells of sessions the queue, the turn, the activity, the pod and the message with -o wide', () => {
    const [header = ''] = lines(shown('sessions', [], true));
    assert.match(header, / LAST +AGE +QUEUE +TURN +ACTIVE +CLASS +PARENT +POD +MESSAGE$/);
  });

  test('tells of turns why one waits or failed, and nothing where the phase has said it', () => {
    const turn = (index: number, status: object, since?: number) => ({
      metadata: { name: `notes-${index}`, creationTimestamp: ago(HOUR) },
      spec: { session: 'notes' },
      status: {
        index,
        ...status,
        conditions: since === undefined ? [] : [{ type: 'Running', lastTransitionTime: ago(since) }],
      },
    });
    const objects = [
      turn(1, { phase: 'Succeeded' }, 50 * MINUTE),
      turn(2, { phase: 'TimedOut', reason: 'Stalled' }, 20 * MINUTE),
      turn(3, { phase: 'Running' }, 12 * SECOND),
      turn(4, { phase: 'Queued' }),
    ];
    assert.deepEqual(lines(shown('turns', objects)), [
      'NAME      SESSION   INDEX   PHASE       REASON    SINCE   AGE',
      'notes-1   notes     1       Succeeded             50m     60m',
      'notes-2   notes     2       TimedOut    Stalled   20m     60m',
      'notes-3   notes     3       Running               12s     60m',
      'notes-4   notes     4       Queued                        60m',
    ]);
  });

  test('tells of classes what their pods may reach, also where a class says nothing of it', () => {
    const specs = [{}, { sandbox: {} }, { sandbox: { network: {} } }, { sandbox: { network: { mode: 'Open' } } }];
    const kind = kinds.find(({ plural }) => plural === 'sessionclasses') as (typeof kinds)[number];
    const { spec } = customResourceDefinition(kind) as unknown as { spec: { versions: [{ schema: Served }] } };
    const schema = spec.versions[0].schema.openAPIV3Schema;
    const objects = specs.map((spec, index) => ({
      metadata: { name: `c${index}`, creationTimestamp: ago(HOUR) },
      spec,
    }));
    for (const object of objects) applyDefaults(object, schema);
    assert.deepEqual(lines(shown('sessionclasses', objects)), [
      'NAME   RUNNER     NETWORK   MAX-RUNNING   AGE',
      'c0     Embedded   None                    60m',
      'c1     Embedded   None                    60m',
      'c2     Embedded   None                    60m',
      'c3     Embedded   Open                    60m',
    ]);
  });

  test.each(kinds.map((kind) => [kind.plural, kind] as const))('%s: at most one time beside the age', (_, kind) => {
    const times = kind.columns.filter(({ type, priority = 0 }) => type === 'date' && priority === 0);
    assert.ok(times.some(({ name }) => name === 'Age'));
    assert.ok(times.length <= 2, times.map(({ name }) => name).join());
  });

  test.each(kinds.map((kind) => [kind.plural, kind] as const))('%s: columns of -o wide stand last', (_, kind) => {
    const priorities = kind.columns.map(({ priority = 0 }) => priority);
    assert.deepEqual(priorities, priorities.toSorted());
  });
});
