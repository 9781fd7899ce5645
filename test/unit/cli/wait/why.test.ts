import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { explain, type WhyFacts, whyText } from '../../../../cli/wait/why.ts';
import { DEFAULT_TTL } from '../../../../core/resources/defaults.ts';
import { parseDuration } from '../../../../core/resources/duration.ts';

const SINCE = '2026-01-01T00:00:00Z';
const NOW = Date.parse('2026-01-01T00:01:00Z');
const after = (duration: string) => Date.parse(SINCE) + parseDuration(duration);
const condition = (type: string, status: 'True' | 'False', reason: string) => ({
  type,
  status,
  reason,
  message: `About ${reason}.`,
  lastTransitionTime: SINCE,
});
const ready = condition('Ready', 'True', 'Ready');

interface Case {
  status?: object | undefined;
  spec?: object;
  metadata?: object;
  turns?: object[];
  allowed?: object;
}
function why({ status, spec, metadata, turns = [], allowed }: Case) {
  return explain({
    session: {
      metadata: { name: 'notes', creationTimestamp: SINCE, ...metadata },
      spec: { turns: 'Many', ...spec },
      status,
    },
    turns: turns.map((status, i) => ({ metadata: { name: `notes-${i + 1}`, creationTimestamp: SINCE }, status })),
    allowed,
    cliName: 'berth',
    now: NOW,
  } as unknown as WhyFacts);
}

describe('what blocks a session, and what happens next:', () => {
  const cases: [what: string, facts: Case, headline: RegExp, expected: object][] = [
    ['no controller', {}, /has not been seen by a controller/, { since: SINCE, next: /nothing, until .* controller/ }],
    ['its deletion', { metadata: { deletionTimestamp: SINCE } }, /is being deleted/, { next: /are gone/ }],
    [
      'a full cluster',
      {
        status: {
          phase: 'Queued',
          conditions: [condition('Admitted', 'False', 'AtCapacity')],
          queue: { reason: 'AtCapacity', since: SINCE, position: 3, holders: [{ name: 'team/a', since: SINCE }] },
        },
        turns: [{ phase: 'Queued' }],
      },
      /waits in the queue/,
      {
        because: /AtCapacity: About AtCapacity\. Slots are held by team\/a \(for 1m\)\./,
        since: SINCE,
        next: /once a slot becomes free; it is number 3/,
      },
    ],
    [
      'a full cluster whose holders the condition names',
      {
        status: {
          phase: 'Queued',
          conditions: [{ ...condition('Admitted', 'False', 'AtCapacity'), message: 'All are taken, held by team/a.' }],
          queue: { reason: 'AtCapacity', since: SINCE, position: 1, holders: [{ name: 'team/a', since: SINCE }] },
        },
      },
      /waits in the queue/,
      { because: /^AtCapacity: All are taken, held by team\/a\.$/, since: SINCE },
    ],
    [
      'a person',
      {
        status: { conditions: [ready] },
        turns: [
          { phase: 'AwaitingApproval', approval: { prompt: 'Go on?', since: SINCE }, granted: { approval: '1h' } },
        ],
      },
      /waits for a decision on turn notes-1/,
      { because: 'Go on?', next: /fails as ApprovalTimeout/, at: after('1h'), act: ['berth approve notes [--deny]'] },
    ],
    [
      'a running turn',
      {
        status: { conditions: [ready] },
        turns: [{ phase: 'Succeeded' }, { phase: 'Running', startedAt: SINCE, granted: { timeout: '10m' } }, {}],
      },
      /runs turn notes-2: nothing blocks it/,
      { since: SINCE, next: /TurnTimedOut; 1 turn waits behind it/, at: after('10m') },
    ],
    [
      'a hold',
      { spec: { suspend: true }, status: { conditions: [condition('Suspended', 'True', 'Held')] }, turns: [{}, {}] },
      /is held.*its 2 waiting turns must wait/,
      { since: SINCE, next: /until it is resumed/, act: ['berth resume notes'] },
    ],
    [
      'failed starts',
      {
        status: {
          conditions: [condition('Ready', 'False', 'StartFailed')],
          startFailures: { count: 2, reason: 'StartFailed', message: 'It exits.', since: SINCE },
        },
        turns: [{ phase: 'Queued' }],
      },
      /cannot start: 2 starts have failed/,
      { because: 'StartFailed: It exits.', next: /started again, after a pause that grows/ },
    ],
    [
      'an image',
      {
        status: {
          podName: 'p',
          conditions: [condition('Admitted', 'True', 'Admitted'), condition('Ready', 'False', 'ImageUnavailable')],
        },
        turns: [{ phase: 'Queued' }],
        allowed: { timeouts: { start: '20m' }, maxTimeouts: { start: '5m' } },
      },
      /cannot take a turn/,
      {
        because: /ImageUnavailable/,
        next: /turn notes-1 runs once that is over; otherwise .*StartFailed/,
        at: after('5m'),
      },
    ],
    [
      'its own start',
      { status: { podName: 'p', conditions: [condition('Ready', 'False', 'Starting')] } },
      /is starting/,
      { next: /it takes turns once/ },
    ],
    [
      'nothing, when it is ready',
      { status: { conditions: [ready], lastActiveAt: SINCE }, spec: { timeouts: { idle: '5m' } } },
      /is ready: nothing blocks it/,
      { next: /without one it is suspended/, at: after('5m') },
    ],
    [
      'nothing, when it is suspended',
      { status: { phase: 'Suspended', conditions: [condition('Suspended', 'True', 'Suspended')] } },
      /is suspended: nothing blocks it/,
      { next: /wakes it; without one it is deleted/, at: after(DEFAULT_TTL.suspended) },
    ],
    [
      'nothing any more, when it is finished',
      {
        status: { phase: 'Finished', conditions: [condition('Finished', 'True', 'RunFailed')] },
        spec: { turns: 'One' },
      },
      /is finished/,
      { because: /RunFailed/, at: after('24h') },
    ],
    [
      'a suspension',
      { status: { phase: 'Suspending', conditions: [condition('Suspended', 'False', 'Suspending')] }, turns: [{}] },
      /is being suspended/,
      { because: 'About Suspending.', next: /then a waiting turn starts it again/ },
    ],
  ];
  for (const [what, facts, headline, expected] of cases) {
    test(what, () => {
      const found = why(facts) as unknown as Record<string, unknown>;
      assert.match(String(found.headline), headline);
      for (const [key, value] of Object.entries(expected)) {
        if (value instanceof RegExp) assert.match(String(found[key]), value);
        else assert.deepEqual(found[key], value, key);
      }
    });
  }

  test('further problems are told beside it', () => {
    const conditions = [
      ready,
      condition('StatePersisted', 'False', 'StateNotStored'),
      condition('Outdated', 'True', 'ClassChanged'),
      condition('SecretsHidden', 'False', 'SecretTooShort'),
      condition('Enterable', 'False', 'SocketTaken'),
    ];
    assert.deepEqual(why({ status: { conditions } }).also, [
      'StateNotStored: About StateNotStored.',
      'ClassChanged: About ClassChanged.',
      'SecretTooShort: About SecretTooShort.',
      'SocketTaken: About SocketTaken.',
    ]);
    assert.deepEqual(why({ status: { conditions: [condition('StatePersisted', 'False', 'NoState')] } }).also, []);
  });
});

test('every fact of an explanation is one line with its time', () => {
  const text = whyText(
    { headline: 'h', because: 'two\nlines', since: SINCE, next: 'n', at: after('5m'), act: ['a', 'b'], also: ['c'] },
    NOW,
  );
  const lines = [
    'h',
    '  because  two lines',
    '  since    2026-01-01T00:00:00Z (1m ago)',
    '  next     n',
    '  at       2026-01-01T00:05:00Z (in 4m)',
    '  to act   a',
    '           b',
    '  also     c',
  ];
  assert.equal(text, `${lines.join('\n')}\n`);
});
