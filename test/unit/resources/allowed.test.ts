import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { sessionRefusal, turnRefusal } from '../../../core/resources/allowed.ts';
import type { SessionClassSpec } from '../../../core/resources/sessionclass.ts';

const aClassSpec = (spec: Partial<SessionClassSpec>): SessionClassSpec => ({
  runner: 'Embedded',
  overrides: ['timeouts', 'resources', 'persistence'],
  secrets: [],
  ...spec,
});

describe('a session is refused', () => {
  const cases: [string, Parameters<typeof sessionRefusal>[0], Partial<SessionClassSpec>, string, string, RegExp][] = [
    ['a field that the class does not let it set', { image: 'x' }, {}, 'NotAllowed', 'spec.image', /leave it out, or/],
    [
      'a timeout above the ceiling',
      { timeouts: { idle: '3h' } },
      { maxTimeouts: { idle: '90m' } },
      'NotAllowed',
      'spec.timeouts.idle',
      /^3h is more than the 1h30m that the class allows; ask for less$/,
    ],
    [
      'a request above the ceiling of the limit that it raises',
      { resources: { requests: { cpu: '2' } } },
      { maxResources: { limits: { cpu: '1500m' } } },
      'NotAllowed',
      'spec.resources.requests.cpu',
      /^2 is more than the 1500m that the class allows as a limit; ask for less$/,
    ],
    [
      'a later amount above its ceiling, behind one that fits',
      { resources: { requests: { cpu: '1' }, limits: { memory: '2Gi' } } },
      { maxResources: { requests: { cpu: '2' }, limits: { memory: '1Gi' } } },
      'NotAllowed',
      'spec.resources.limits.memory',
      /^2Gi is more than the 1Gi that the class allows/,
    ],
    [
      'a larger state than the class allows',
      { persistence: { state: true, maxState: '2Mi' } },
      { maxPersistence: { maxState: '1Mi' } },
      'NotAllowed',
      'spec.persistence.maxState',
      /^2Mi is more than the 1Mi/,
    ],
    [
      'a workspace where the class allows none',
      { persistence: { state: true, workspace: { type: 'Volume', size: '1Gi' } } },
      { maxPersistence: { workspaceSize: '0' } },
      'NotAllowed',
      'spec.persistence.workspace.size',
      /^1Gi is more than the 0/,
    ],
    [
      'a request above its own limit',
      { resources: { requests: { cpu: '2' }, limits: { cpu: '1' } } },
      {},
      'InvalidSpec',
      'spec.resources.requests.cpu',
      /lower the request or raise the limit/,
    ],
    [
      'no state and no lifetime',
      { persistence: { state: false } },
      {},
      'InvalidSpec',
      'spec.timeouts.lifetime',
      /set it, for example to 8h/,
    ],
    [
      'a stall timeout without a runner',
      { timeouts: { stall: '5m' } },
      { runner: 'None', image: 'x' },
      'InvalidSpec',
      'spec.timeouts.stall',
      /leave it out/,
    ],
  ];
  for (const [what, spec, ofClass, reason, field, message] of cases) {
    test(what, () => {
      const refused = sessionRefusal(spec, aClassSpec(ofClass));
      assert.deepEqual([refused?.reason, refused?.field], [reason, field]);
      assert.match(refused?.message ?? '', message);
    });
  }

  test('not if it asks for as much as the class allows', () => {
    const spec = { timeouts: { turn: '60m' }, resources: { limits: { cpu: '1000m' } } };
    const ofClass = { maxTimeouts: { turn: '1h' }, maxResources: { limits: { cpu: '1' } } };
    assert.equal(sessionRefusal(spec, aClassSpec(ofClass)), undefined);
    const withoutState = { persistence: { state: false } };
    assert.equal(sessionRefusal(withoutState, aClassSpec({ maxTimeouts: { lifetime: '8h' } })), undefined);
    assert.equal(sessionRefusal(withoutState, aClassSpec({ timeouts: { lifetime: '8h' } })), undefined);
  });
});

describe('a turn is refused', () => {
  test('a timeout that its session could not set either, as the class does not allow it', () => {
    const refused = turnRefusal({ timeout: '1s' }, aClassSpec({ overrides: [] }));
    assert.deepEqual([refused?.reason, refused?.field], ['NotAllowed', 'spec.timeout']);
    assert.match(refused?.message ?? '', /leave it out, or have "timeouts" added to the class's spec\.overrides/);
  });
  test('a timeout above the ceiling, in the words of the session’s', () => {
    const allowed = aClassSpec({ maxTimeouts: { turn: '1h' } });
    const refused = turnRefusal({ timeout: '999h' }, allowed);
    assert.equal(refused?.message, sessionRefusal({ timeouts: { turn: '999h' } }, allowed)?.message);
    assert.equal(turnRefusal({ timeout: '60m' }, allowed), undefined);
  });
  test('not without a timeout of its own', () => {
    assert.equal(turnRefusal({}, aClassSpec({ overrides: [], maxTimeouts: { turn: '1s' } })), undefined);
  });
});
