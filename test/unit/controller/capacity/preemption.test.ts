import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { fullOf, type Limit } from '../../../../controller/capacity/limits.ts';
import { type PreemptionCandidate, planPreemption } from '../../../../controller/capacity/preemption.ts';
import { Queue } from '../../../../controller/capacity/queue.ts';
import { type Space, Tally } from '../../../../controller/capacity/tally.ts';

interface Case {
  max?: number;
  classLimits?: Record<string, number>;
  minIdle?: Record<string, number>;
  /** `namespace/name:class`, in the order in which they came. */
  waiting: string[];
  candidates: (Partial<PreemptionCandidate> & { key: string })[];
  /** Places of others than the candidates. */
  busy?: number;
}

function limitsIn({ max, classLimits = {} }: Case) {
  return (space: Space): Limit[] => {
    const ofClass = classLimits[space.class ?? ''];
    return [
      ...(max === undefined ? [] : [{ scope: 'Installation', slots: max } as const]),
      ...(ofClass === undefined ? [] : [{ scope: 'Class', slots: ofClass } as const]),
    ];
  };
}

function whoGivesWay(given: Case): Record<string, string> {
  const queue = new Queue();
  for (const [since, text] of given.waiting.entries()) {
    const [key = '', ofClass = 'default'] = text.split(':');
    queue.join({ key, namespace: key.split('/')[0] ?? '', class: ofClass, priority: 0, since });
  }
  const tally = new Tally();
  const candidates = given.candidates.map(
    (candidate): PreemptionCandidate => ({
      namespace: 'team',
      class: 'default',
      rests: 'Idle',
      since: 0,
      ...candidate,
    }),
  );
  for (const candidate of candidates) tally.add(candidate);
  for (let n = 0; n < (given.busy ?? 0); n++) tally.add({ namespace: 'team', class: 'default' });
  const minIdle = (name: string) => given.minIdle?.[name] ?? 0;
  return Object.fromEntries(planPreemption({ queue, tally, limits: limitsIn(given), candidates, minIdle }));
}

describe('when a session waits', () => {
  test('the session with the longest rest is preempted', () => {
    const candidates = [
      { key: 't/young', since: 30 },
      { key: 't/old', since: 10 },
    ];
    assert.deepEqual(whoGivesWay({ max: 2, waiting: ['t/w'], candidates }), { 't/old': 't/w' });
  });
  test('no more sessions are preempted than wait', () => {
    const candidates = ['1', '2', '3', '4'].map((name, since) => ({ key: `t/${name}`, since }));
    assert.deepEqual(whoGivesWay({ max: 4, waiting: ['t/a', 't/b'], candidates }), { 't/1': 't/a', 't/2': 't/b' });
  });
  test('no session is preempted for one that has a free slot', () => {
    assert.deepEqual(whoGivesWay({ max: 2, waiting: ['t/w'], candidates: [{ key: 't/idle' }] }), {});
  });
  test('no session is preempted where none is idle', () => {
    assert.deepEqual(whoGivesWay({ max: 2, busy: 2, waiting: ['t/w'], candidates: [] }), {});
  });
  test('only a session whose slot is of use is preempted', () => {
    const candidates = [
      { key: 't/other', class: 'other', since: 1 },
      { key: 't/same', class: 'narrow', since: 2 },
    ];
    assert.deepEqual(whoGivesWay({ classLimits: { narrow: 1 }, waiting: ['t/w:narrow'], candidates }), {
      't/same': 't/w',
    });
    const alone = candidates.slice(0, 1);
    assert.deepEqual(whoGivesWay({ classLimits: { narrow: 0 }, waiting: ['t/w:narrow'], candidates: alone }), {});
  });
  test('as many as necessary are preempted after a limit was lowered, and none where that is not enough', () => {
    const candidates = ['1', '2', '3'].map((name, since) => ({ key: `t/${name}`, since }));
    assert.deepEqual(whoGivesWay({ max: 2, waiting: ['t/w'], candidates }), { 't/1': 't/w', 't/2': 't/w' });
    assert.deepEqual(whoGivesWay({ max: 2, busy: 2, waiting: ['t/w'], candidates }), {});
    assert.deepEqual(whoGivesWay({ max: 0, waiting: ['t/w'], candidates }), {});
  });
  test('a session that frees slots of both kinds is preempted alone', () => {
    const candidates = [
      { key: 't/other', class: 'other', since: 1 },
      { key: 't/same', class: 'narrow', since: 2 },
    ];
    const given = { max: 2, classLimits: { narrow: 1 }, waiting: ['t/w:narrow'], candidates };
    assert.deepEqual(whoGivesWay(given), { 't/same': 't/w' });
  });
  test('as many idle sessions of a class as minIdle says keep their slots, also those just active', () => {
    const candidates = [
      { key: 't/1', since: 1 },
      { key: 't/2', since: 2 },
      { key: 't/3', since: 3, spared: true },
    ];
    const given = { max: 3, waiting: ['t/a', 't/b'], candidates };
    assert.deepEqual(whoGivesWay({ ...given, minIdle: { default: 2 } }), { 't/1': 't/a' });
    assert.deepEqual(whoGivesWay({ ...given, minIdle: { default: 3 } }), {});
  });
  test('sessions that wait for an approval are preempted last', () => {
    const candidates: Case['candidates'] = [
      { key: 't/asks', rests: 'AwaitingApproval', since: 1 },
      { key: 't/idle', since: 9 },
    ];
    assert.deepEqual(whoGivesWay({ max: 2, waiting: ['t/w'], candidates }), { 't/idle': 't/w' });
    assert.deepEqual(whoGivesWay({ max: 2, waiting: ['t/v', 't/w'], candidates }), {
      't/idle': 't/v',
      't/asks': 't/w',
    });
    const kept = { max: 2, waiting: ['t/w'], candidates, minIdle: { default: 1 } };
    assert.deepEqual(whoGivesWay(kept), { 't/asks': 't/w' });
  });
  test('a session that is preempted already is not exchanged for another', () => {
    const candidates = [
      { key: 't/old', since: 1 },
      { key: 't/going', since: 9, isSuspending: true },
    ];
    assert.deepEqual(whoGivesWay({ max: 2, waiting: ['t/w'], candidates }), { 't/going': 't/w' });
  });
  test('a session that cannot be suspended is not preempted', () => {
    const candidates = [
      { key: 't/old', since: 1, spared: true },
      { key: 't/young', since: 9 },
    ];
    assert.deepEqual(whoGivesWay({ max: 2, waiting: ['t/w'], candidates }), { 't/young': 't/w' });
  });
});

test('each preempted session makes room for one that can then be admitted, and none is preempted in vain', () => {
  const candidate = fc.record({
    class: fc.constantFrom('default', 'narrow'),
    rests: fc.constantFrom('Idle' as const, 'AwaitingApproval' as const),
    since: fc.integer({ min: 0, max: 5 }),
    spared: fc.boolean(),
  });
  const any = fc.record({
    max: fc.integer({ min: 0, max: 8 }),
    narrow: fc.integer({ min: 0, max: 4 }),
    keep: fc.integer({ min: 0, max: 2 }),
    busy: fc.integer({ min: 0, max: 4 }),
    waiting: fc.array(fc.constantFrom('default', 'narrow'), { maxLength: 6 }),
    candidates: fc.array(candidate, { maxLength: 6 }),
  });
  fc.assert(
    fc.property(any, ({ max, narrow, keep, busy, waiting, candidates }) => {
      const given: Case = {
        max,
        classLimits: { narrow },
        minIdle: { narrow: keep },
        busy,
        waiting: waiting.map((ofClass, n) => `t/w${n}:${ofClass}`),
        candidates: candidates.map((one, n) => ({ key: `t/g${n}`, ...one })),
      };
      const chosen = whoGivesWay(given);
      const tally = new Tally();
      const placeOf = (key: string) => ({ namespace: 'team', class: candidates[Number(key.slice(3))]?.class });
      for (const one of candidates) tally.add({ namespace: 'team', class: one.class });
      for (let n = 0; n < busy; n++) tally.add({ namespace: 'team', class: 'default' });
      const idle = candidates.filter((one) => one.class === 'narrow' && one.rests === 'Idle');
      const gone = idle.filter((one) => chosen[`t/g${candidates.indexOf(one)}`] !== undefined);
      assert.ok(idle.length - gone.length >= Math.min(keep, idle.length));
      for (const [n, ofClass] of waiting.entries()) {
        const space = { namespace: 't', class: ofClass };
        const isFull = () => fullOf(limitsIn(given)(space), space, tally).length > 0;
        const group = Object.keys(chosen).filter((key) => chosen[key] === `t/w${n}`);
        for (const key of group) {
          assert.equal(candidates[Number(key.slice(3))]?.spared, false);
          tally.add(placeOf(key), -1);
        }
        for (const key of group) {
          tally.add(placeOf(key));
          assert.equal(isFull(), true, `${key} goes for nothing`);
          tally.add(placeOf(key), -1);
        }
        assert.ok(group.length === 0 || !isFull(), 'one goes in vain');
        if (!isFull()) tally.add(space);
      }
    }),
  );
});

test('a plan looks at each candidate a few times, however many sessions wait in vain', () => {
  const [waiting, idle] = [200, 500];
  const queue = new Queue();
  const tally = new Tally();
  for (let i = 0; i < waiting; i++) {
    for (const ofClass of ['full', 'kept'])
      queue.join({ key: `n${i}/${ofClass}`, namespace: `n${i}`, class: ofClass, priority: 0, since: i });
  }
  for (let i = 0; i < 10; i++) tally.add({ namespace: 'busy', class: 'full' });
  const candidates = Array.from({ length: 2 * idle }, (_, i): PreemptionCandidate => {
    const space = { namespace: `n${i % waiting}`, class: i % 2 ? 'kept' : 'other' };
    tally.add(space);
    return { key: `n${i}/c`, ...space, rests: 'Idle', since: i };
  });
  let looks = 0;
  const minIdle = (name: string) => {
    looks++;
    return name === 'kept' ? idle : 0;
  };
  const chosen = planPreemption({
    queue,
    tally,
    candidates,
    minIdle,
    limits: (space) => [
      { scope: 'Class', slots: space.class === 'full' ? 10 : idle },
      ...(space.class === 'kept' ? [{ scope: 'Namespace', slots: 1 } as const] : []),
    ],
  });
  assert.equal(chosen.size, 0);
  assert.ok(looks <= 2 * candidates.length, `${looks} looks at ${candidates.length} candidates`);
});
