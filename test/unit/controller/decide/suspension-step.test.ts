import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import {
  STEPS,
  type SuspensionFacts,
  suspensionStep,
  TRANSITIONS,
} from '../../../../controller/decide/suspension-step.ts';
import { changes, type Fact } from '../../../../controller/observed/memory.ts';
import { aClass, aLink, aMemory, aSession, NOW, POD_UID, RUNNING_STATUS } from '../../../support/world.ts';

type World = SuspensionFacts['world'];
type Change = Partial<Omit<SuspensionFacts, 'world'>> & Partial<World>;

const snapshot = {
  seq: 9,
  kind: 'state' as const,
  message: { digest: 'd', keyId: 'k', bytes: 1 },
  binary: Buffer.alloc(1),
};
const state = { digest: 'a'.repeat(64), keyId: 'k', bytes: 1, incarnation: 1, seq: 9, inline: 'AA==' };
const problem = { reason: 'StateNotStored', message: 'the store is full' } as const;
const session = aSession({ status: RUNNING_STATUS });
const { generation } = session.metadata;

const world: World = { session, class: aClass(), link: aLink(), memory: aMemory(), now: NOW };
const idle: SuspensionFacts = { world, podUID: POD_UID, isWanted: false, isStateWritten: true };

function change(facts: SuspensionFacts, { podUID, isWanted, isStateWritten, ...ofWorld }: Change): SuspensionFacts {
  const flags = { podUID, isWanted, isStateWritten };
  const given = Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined));
  return { ...facts, ...given, world: { ...facts.world, ...ofWorld } };
}

/** Takes a fact into the memory, as an effect does. */
function learned(facts: SuspensionFacts, fact: Fact): SuspensionFacts {
  const { memory } = facts.world;
  return change(facts, { memory: { ...memory, ...changes(memory, fact) } });
}

const waiting = change(idle, { isWanted: true, isStateWritten: false });
const requested = change(idle, { isWanted: true });
const sent = change(requested, { link: aLink({ suspendSent: true }) });
const asked = learned(sent, { fact: 'SuspensionAsked', podUID: POD_UID, at: NOW });
const received = change(asked, { link: aLink({ suspendSent: true, suspended: true, snapshot }) });
const verified = learned(received, { fact: 'SuspensionVerified', podUID: POD_UID, verified: state });
const undone = change(asked, { isWanted: false });
const failed = change(asked, { now: NOW + 5 * 60_000 });
/** The link is as new, the memory has no question any more. */
const resumed = (facts: SuspensionFacts) => learned(change(facts, { link: aLink() }), { fact: 'SuspensionUndone' });
const noted = (facts: SuspensionFacts) =>
  learned(resumed(facts), { fact: 'SuspensionFailed', problem, generation, at: facts.world.now });
const backedOff = noted(failed);

/** Facts before and after each transition, by what brings it about. */
const cases: Record<string, [SuspensionFacts, SuspensionFacts]> = {
  'a suspension is asked for before the result is in the status': [idle, waiting],
  'a suspension is asked for': [idle, requested],
  'the runner says that it was never bound': [
    change(requested, { link: aLink({ phase: 'Opening', fresh: false }) }),
    change(requested, { link: aLink({ phase: 'Unbound' }) }),
  ],
  'the status has the result, and the runner has answered': [waiting, requested],
  'the request is sent': [requested, asked],
  'the runner confirms and hands over its state': [asked, received],
  'the runner cannot pack its state': [
    asked,
    change(asked, {
      link: aLink({ suspendSent: true, refused: { n: 3, code: 'SnapshotFailed', message: 'too large' } }),
    }),
  ],
  'timeouts.persist is over': [asked, failed],
  'the state is stored and the live read finds nothing new': [received, verified],
  'the live read finds something new': [received, resumed(change(received, { isWanted: false }))],
  'the state cannot be stored': [received, noted(received)],
  'the status is written': [
    verified,
    change(verified, { session: aSession({ status: { ...RUNNING_STATUS, state } }) }),
  ],
  'a turn comes, or the request is taken back': [asked, undone],
  'the runner has the request to take turns': [undone, resumed(undone)],
  'the failure is noted': [failed, backedOff],
  'the back-off is over': [backedOff, change(backedOff, { now: backedOff.world.now + 600_000 })],
  'the session is edited': [
    backedOff,
    change(backedOff, {
      session: { ...session, metadata: { ...session.metadata, generation: (generation ?? 1) + 1 } },
    }),
  ],
  'another leader takes over': [asked, change(asked, { memory: aMemory(), link: aLink() })],
};

describe('a suspension goes on', () => {
  for (const { from, to, by } of TRANSITIONS) {
    test(`from ${from} to ${to} when ${by}`, () => {
      const [before, after] = cases[by] ?? assert.fail('no facts for this transition');
      assert.deepEqual([suspensionStep(before).step, suspensionStep(after).step], [from, to]);
    });
  }
  test('by every listed way, to every step', () => {
    assert.deepEqual(
      Object.keys(cases),
      TRANSITIONS.map(({ by }) => by),
    );
    const reached = new Set(TRANSITIONS.flatMap(({ from, to }) => [from, to]));
    assert.deepEqual([...reached].sort(), Object.keys(STEPS).sort());
  });
});

test('a state that nobody keeps is not waited for', () => {
  const withoutState = aSession({ spec: { persistence: { state: false } }, status: RUNNING_STATUS });
  const facts = change(asked, { session: withoutState, link: aLink({ suspendSent: true, suspended: true }) });
  assert.equal(suspensionStep(facts).step, 'StateReceived');
});

describe('a runner that refuses turns though no suspension is wanted', () => {
  /** What the link shows of a runner that was asked, and what is done about it. */
  const cases: { what: string; link: Parameters<typeof aLink>[0]; step: string }[] = [
    { what: 'was asked and has not answered', link: { suspendSent: true }, step: 'Undone' },
    { what: 'was asked and has confirmed', link: { suspendSent: true, suspended: true }, step: 'Undone' },
    // The first request to go on was lost with its connection, or was an earlier leader's.
    { what: 'was told to go on, and says that it refuses', link: { suspended: true }, step: 'Undone' },
    { what: 'was not asked', link: {}, step: 'NotWanted' },
    { what: 'is another leader’s', link: { phase: 'Foreign', suspended: true }, step: 'NotWanted' },
    { what: 'was never bound', link: { phase: 'Unbound' }, step: 'NotWanted' },
  ];
  for (const { what, link, step } of cases) {
    test(`is told to take turns again, as often as it takes, where it ${what}: ${step}`, () => {
      for (const memory of [aMemory(), asked.world.memory]) {
        const facts = change(idle, { link: aLink(link), memory });
        assert.equal(suspensionStep(facts).step, step);
      }
    });
  }
});
