import assert from 'node:assert/strict';
import { test } from 'vitest';
import { decide } from '../../../../controller/decide/decide.ts';
import type { StateRef } from '../../../../core/resources/schema.ts';
import { aLink, aPod, aSession, aTurn, aWorld, POD_UID, RUNNING_STATUS, runningTurn } from '../../../support/world.ts';

const stateAt = (incarnation: number, seq: number): StateRef => ({
  digest: 'a'.repeat(64),
  keyId: 'k',
  bytes: 1,
  incarnation,
  seq,
  ref: `${incarnation}/${seq}`,
});

const POSITIONS = [undefined, stateAt(1, 9), stateAt(2, 3), stateAt(2, 5)];
const PLACES = ['status', 'memory', 'live', 'ended', 'suspension'] as const;
type Place = (typeof PLACES)[number];

/** Every way to put the states at the places where a state can stand. */
function* everyWay(): Generator<Record<Place, StateRef | undefined>> {
  const ways = POSITIONS.length ** PLACES.length;
  for (let way = 0; way < ways; way++) {
    const at = (i: number) => POSITIONS[Math.floor(way / POSITIONS.length ** i) % POSITIONS.length];
    yield Object.fromEntries(PLACES.map((place, i) => [place, at(i)])) as Record<Place, StateRef | undefined>;
  }
}

/** A turn that waits for a decision, for example, is suspended with a later state than the one that it asked with. */
test('the state of a session only moves forward: to the latest that a turn, a suspension or the memory has', () => {
  const given = (state: StateRef | undefined) => (state ? { state } : {});
  for (const { status, memory, live, ended, suspension } of everyWay()) {
    const session = aSession({
      status: {
        ...RUNNING_STATUS,
        incarnation: 2,
        lastTurn: { name: 'a', index: 1, phase: 'Succeeded' },
        ...given(status),
      },
    });
    const turns = [
      aTurn({ name: 'b', status: { index: 2, phase: 'Succeeded', incarnation: 2, podUID: POD_UID, ...given(ended) } }),
      runningTurn('c', { status: { index: 3, phase: 'AwaitingApproval', incarnation: 2, ...given(live) } }),
    ];
    const world = aWorld({
      session,
      turns,
      pod: aPod({ incarnation: 2 }),
      link: aLink(),
      memory: {
        committed: memory,
        podRead: { podUID: POD_UID },
        ...(suspension ? { suspension: { podUID: POD_UID, askedAt: 0, verified: suspension } } : {}),
      },
    });
    const rank = (state: StateRef | undefined) => (state ? state.incarnation * 100 + state.seq : 0);
    const latest = Math.max(...[status, memory, live, ended, suspension].map(rank));
    const told = JSON.stringify({ status, memory, live, ended, suspension }, [
      'status',
      'memory',
      'live',
      'ended',
      'suspension',
      'incarnation',
      'seq',
    ]);
    assert.equal(rank(decide(world).status.state), latest, told);
  }
});
