import type { Bug } from './bug.ts';

/** Mistakes that matter only in worlds in which much is shared, made again, changed while it waits, or old. */
export const worldBugs: readonly Bug[] = [
  {
    name: 'a state of a turn that waits taken for later than that of the session',
    caughtBy: ['forward', 'goes on'],
    within: 200,
    focus: {
      writing: true,
      deeds: ['decide on a request', 'suspend a session', 'resume a session', 'ask a session to suspend once'],
    },
    edits: [
      {
        file: 'controller/decide/committed-state.ts',
        find: 'return highestState([world.session.status?.state, world.memory.committed, ...states]);',
        replace: 'return highestState([world.memory.committed, ...states]) ?? world.session.status?.state;',
      },
    ],
  },
  {
    name: 'a concurrency group that counts each class for itself',
    caughtBy: ['groups'],
    within: 100,
    focus: { sharing: true },
    edits: [
      {
        file: 'controller/capacity/membership.ts',
        find: '  const group = wanted && `',
        replace: "  const group = wanted && (session?.spec.class ?? '') + `",
      },
      {
        file: 'controller/capacity/membership.ts',
        find: 'const where = concurrencyGroup === undefined ? own : `',
        replace: "const where = concurrencyGroup === undefined ? own : (session?.spec.class ?? '') + `",
      },
    ],
  },
  {
    name: 'a state of before a rotation of the master key that is opened with the new key',
    caughtBy: ['works'],
    within: 30,
    focus: {
      misfortunes: ['the master key is rotated'],
      misfortuneEveryMs: 20_000,
      faultyMs: 150_000,
      deeds: ['ask a session to suspend once'],
      deedEveryMs: 3000,
    },
    edits: [
      {
        file: 'controller/act/bind.ts',
        find: '          ...(reseals && { sealedWith: keyOf(known, master) }),\n',
        replace: '',
      },
    ],
  },
];
