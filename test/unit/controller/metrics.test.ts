import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'vitest';
import { ApiMetrics } from '../../../api/metrics.ts';
import { Tally } from '../../../controller/capacity/tally.ts';
import type { Inventory } from '../../../controller/meter.ts';
import { ControllerMetrics } from '../../../controller/metrics.ts';
import { FrameDecoder } from '../../../core/frames/decode.ts';
import { ApiError, TransportError } from '../../../core/kube/errors.ts';
import type { StoredTurn } from '../../../core/resources/kinds.ts';
import type { TurnStatus } from '../../../core/resources/turn.ts';
import { samplesOf } from '../../support/metrics.ts';

function turn(status: TurnStatus): StoredTurn {
  const metadata = {
    name: 'a',
    namespace: 'team',
    uid: 'u',
    resourceVersion: '1',
    creationTimestamp: '2026-01-01T00:00:00Z',
  };
  return { metadata, spec: { session: 'notes', cancel: false }, status } as StoredTurn;
}

const read = async ({ registry }: ControllerMetrics, metric: string) => samplesOf(await registry.metrics(), metric);

test('a turn counts by class, phase and code; its times where its agent was started, and never below nothing', async () => {
  const metrics = new ControllerMetrics();
  const times = { startedAt: '2026-01-01T00:00:02.500Z', finishedAt: '2026-01-01T00:00:04Z' };
  metrics.turnEnded(turn({ phase: 'Succeeded', ...times }), 'default');
  metrics.turnEnded(turn({ phase: 'Succeeded', ...times, finishedAt: '2026-01-01T00:00:02Z' }), 'default');
  metrics.turnEnded(turn({ phase: 'Failed', error: { code: 'PodLost', message: '' } }), '');
  assert.deepEqual(await read(metrics, 'berth_turns_total'), {
    '{class="default",phase="Succeeded",code=""}': 2,
    '{class="",phase="Failed",code="PodLost"}': 1,
  });
  assert.deepEqual(await read(metrics, 'berth_turn_duration_seconds_sum'), {
    '{class="default",phase="Succeeded"}': 1.5,
  });
  assert.deepEqual(await read(metrics, 'berth_turn_queue_seconds_sum'), { '{class="default"}': 5 });
});

test('a reconcile that failed is counted by the status of the API server', async () => {
  const metrics = new ControllerMetrics();
  metrics.reconciled('success', 0.1);
  metrics.reconciled('error', 0.1, new ApiError({ code: 403, reason: 'whatever a webhook says', message: '' }));
  metrics.reconciled('error', 0.1, new TransportError('no answer'));
  metrics.reconciled('error', 0.1, new Error('something'));
  metrics.reconciled('error', 0.1, new TypeError('x is undefined'));
  metrics.reconciled('stopped', 0.1, new Error('the controller is stopping'));
  assert.deepEqual(await read(metrics, 'berth_reconcile_total'), {
    '{result="success"}': 1,
    '{result="error"}': 4,
    '{result="stopped"}': 1,
  });
  assert.deepEqual(await read(metrics, 'berth_reconcile_errors_total'), {
    '{code="403"}': 1,
    '{code="TransportError"}': 1,
    '{code="Other"}': 1,
    '{code="ProgrammingError"}': 1,
  });
});

test('decoders that share their counters are told of together, also after they are gone', async () => {
  const metrics = new ControllerMetrics();
  for (const text of ['junk\n', '<<<BERTH_START {}>>>\n']) {
    new FrameDecoder({ counters: metrics.refused }).push(Buffer.from(text));
  }
  new FrameDecoder().push(Buffer.from('not mine\n'));
  assert.equal((await read(metrics, 'berth_frames_refused_total'))['{reason="torn"}'], 1);
  assert.deepEqual(await read(metrics, 'berth_frames_junk_bytes_total'), { '': 5 });
  // Read twice is not counted twice.
  assert.deepEqual(await read(metrics, 'berth_frames_junk_bytes_total'), { '': 5 });
});

test('the leader alone counts objects, as they are at the moment', async () => {
  const metrics = new ControllerMetrics();
  const tally = new Tally();
  tally.add({ namespace: 'team', class: 'small' });
  tally.add({ namespace: 'team', class: 'gone' });
  const session = (phase: string | undefined, ofClass: string, reason?: string) => ({
    spec: { class: ofClass },
    status: { ...(phase ? { phase } : {}), ...(reason ? { queue: { reason, since: '' } } : {}) },
  });
  const open = {
    spec: { class: 'free' },
    status: {
      phase: 'Ready',
      conditions: [
        { type: 'RunnerHardened', status: 'False' },
        { type: 'AgentContained', status: 'True' },
      ],
    },
  };
  const inventory = {
    sessions: [session('Ready', 'small'), session('Queued', 'gone', 'AtCapacity'), session(undefined, 'free'), open],
    pods: [
      { metadata: {}, status: { phase: 'Running' } },
      { metadata: { deletionTimestamp: 'now' }, status: { phase: 'Running' } },
    ],
    pools: [
      {
        metadata: { namespace: 'team', name: 'default' },
        spec: { replicas: 3 },
        status: { ready: 2, claimed: 5, missed: 1 },
      },
    ],
    tally,
    attached: 2,
    maxRunning: 0,
    inputBytes: 12,
    historyBytes: 345,
    class: (name: string) =>
      name === 'gone' ? undefined : { spec: name === 'small' ? { limits: { maxRunning: 3 } } : {} },
  } as unknown as Inventory;
  const held = { namespace: 'team', bytes: 6, holding: { states: 4, history: 2 }, others: 1, share: 4 };
  const quota = { ...held, namespace: 'small', bytes: 2, share: 3, quota: 3 };
  const storeUsage = async () => ({ bytes: 7, ceiling: 9, largest: [held], limited: [quota] });
  metrics.measured = { isLeading: true, inventory, storeUsage };
  const some = async (metric: string) =>
    Object.fromEntries(Object.entries(await read(metrics, metric)).filter(([, value]) => value !== 0));
  assert.deepEqual(await some('berth_sessions'), { '{phase="New"}': 1, '{phase="Ready"}': 2, '{phase="Queued"}': 1 });
  assert.deepEqual(await read(metrics, 'berth_sessions_unprotected'), {
    '{condition="RunnerHardened"}': 1,
    '{condition="AgentContained"}': 0,
  });
  assert.deepEqual(await some('berth_pods'), { '{phase="Running"}': 1, '{phase="Terminating"}': 1 });
  assert.deepEqual(await some('berth_queue_length'), { '{reason="AtCapacity"}': 1 });
  assert.deepEqual(await read(metrics, 'berth_attaches'), { '': 2 });
  const ofPool = async (what: string) =>
    (await read(metrics, `berth_pool_${what}`))['{namespace="team",pool="default"}'];
  assert.deepEqual(await Promise.all(['desired', 'ready', 'claimed_total', 'missed_total'].map(ofPool)), [3, 2, 5, 1]);
  assert.deepEqual(await read(metrics, 'berth_slots_used'), { '': 2 });
  assert.deepEqual(await read(metrics, 'berth_slots_limit'), { '': 0 });
  assert.deepEqual(await read(metrics, 'berth_class_slots_used'), { '{class="small"}': 1, '{class="free"}': 0 });
  assert.deepEqual(await read(metrics, 'berth_class_slots_limit'), { '{class="small"}': 3 });
  assert.deepEqual(await read(metrics, 'berth_leader'), { '': 1 });
  assert.deepEqual(await read(metrics, 'berth_turn_bytes'), { '{state="Live"}': 12, '{state="Ended"}': 345 });
  assert.deepEqual(await read(metrics, 'berth_store_bytes'), { '': 7 });
  assert.deepEqual(await read(metrics, 'berth_store_ceiling_bytes'), { '': 9 });
  assert.deepEqual(await read(metrics, 'berth_store_namespace_bytes'), {
    '{namespace="team"}': 6,
    '{namespace="small"}': 2,
  });
  assert.deepEqual(await read(metrics, 'berth_store_namespace_quota_bytes'), { '{namespace="small"}': 3 });
  metrics.measured = { isLeading: true, inventory, storeUsage: () => Promise.reject(new Error('no answer')) };
  for (const metric of ['berth_store_bytes', 'berth_store_namespace_bytes'])
    assert.deepEqual(await read(metrics, metric), {}, 'a count that failed');
  metrics.measured = { isLeading: false, inventory: undefined, storeUsage: async () => undefined };
  const leaders = ['berth_sessions', 'berth_pods', 'berth_slots_used', 'berth_slots_limit', 'berth_turn_bytes'];
  for (const metric of [...leaders, 'berth_store_bytes']) {
    assert.deepEqual(await read(metrics, metric), {}, metric);
  }
  assert.deepEqual(await read(metrics, 'berth_leader'), { '': 0 });
});

test('docs/operations.md has a row for every metric and for nothing else, with its type and labels', async () => {
  const page = await readFile(join(import.meta.dirname, '../../../docs/operations.md'), 'utf8');
  const rows = [...page.matchAll(/^\| `(berth_\w+)(?:\{([\w, ]+)\})?` \| (\w+) \|/gm)];
  const written = rows.map(([, name, labels = '', type]) => `${type} ${name} ${labels.replaceAll(' ', '')}`.trim());
  const known = [new ControllerMetrics(), new ApiMetrics()].flatMap(({ registry }) =>
    registry.getMetricsAsArray().map((metric) => {
      const {
        name,
        type,
        labelNames = [],
      } = metric as unknown as { name: string; type: string; labelNames?: string[] };
      return `${type} ${name} ${labelNames.filter((label) => label !== 'le').join()}`.trim();
    }),
  );
  assert.deepEqual(written.sort(), [...new Set(known)].sort());
});

test('every metric is named as Prometheus advises, by its type and its unit', async () => {
  const OTHER_UNITS =
    /_(ms|millis|milliseconds|microseconds|minutes|hours|days|kb|mb|kib|mib|kilobytes|megabytes|percent)(_|$)/;
  const controller = new ControllerMetrics();
  const texts = [controller, new ApiMetrics()].map(({ registry }) => registry.metrics());
  const text = (await Promise.all(texts)).join('\n');
  const types = [...text.matchAll(/^# TYPE (\S+) (\w+)$/gm)];
  assert.ok(types.length > 40);
  const wrong = types.flatMap(([, name = '', type = '']) => {
    const base = name.replace(/_total$/, '');
    const help = new RegExp(`^# HELP ${name} (.+)$`, 'm').exec(text)?.[1] ?? '';
    return Object.entries({
      'is no snake case with the prefix berth_': !/^berth(_[a-z][a-z0-9]*)+$/.test(name),
      'ends with _total and is no counter, or the other way round': name.endsWith('_total') !== (type === 'counter'),
      'has a suffix that Prometheus gives': /_(count|sum|bucket)$/.test(base),
      'names its type': /_(gauge|counter|histogram|summary)(_|$)/.test(name),
      'has a unit that is no base unit': OTHER_UNITS.test(name),
      'has its unit in the middle': /_(seconds|bytes)_/.test(base),
      'is a histogram without a unit': type === 'histogram' && !/_(seconds|bytes)$/.test(base),
      'is a time that is called a duration': /_(at|until|after|before|since)_seconds$/.test(base),
      'has no sentence for help': !/^[A-Z1].*\.$/.test(help),
    }).flatMap(([what, isSo]) => (isSo ? [`${name} (${type}) ${what}`] : []));
  });
  assert.deepEqual(wrong, []);
});

test('claims of pods from pools are measured from the decision to the write', async () => {
  const metrics = new ControllerMetrics();
  metrics.claimed(0.03);
  assert.deepEqual(await read(metrics, 'berth_pool_claim_seconds_sum'), { '': 0.03 });
});
