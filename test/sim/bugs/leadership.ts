import type { Focus } from '../focus.ts';
import { type Bug, PLAIN } from './bug.ts';

/** A former leader whose lease was deleted, with requests under way. */
const DELETED_LEASE: Focus = {
  misfortunes: ['the lease is deleted while requests of the leader are held up'],
  misfortuneEveryMs: 4000,
  deedEveryMs: 300,
};

/** A former leader whose lease was deleted, and a next one that is replaced before it has waited. */
const NEXT_HOLDER: Focus = {
  misfortuneEveryMs: 8000,
  deedEveryMs: 300,
  rates: { slow: 0.1, watchStalled: 0 },
  ...PLAIN,
};

/** Mistakes by which two successive leaders break the order of turns and states. */
export const leadershipBugs: readonly Bug[] = [
  {
    name: 'an unsealed ready raises the epoch',
    caughtBy: ['own epochs'],
    within: 20,
    focus: { podRates: { hostile: 1 }, ...PLAIN },
    edits: [
      {
        file: 'controller/link/handshake.ts',
        find: '    if (isLater && binding.isProven(ready)) {\n',
        replace: '    if (isLater) {\n',
      },
    ],
  },
  {
    name: 'a new leader puts turns in order before its predecessor is dead',
    caughtBy: ['one leader', 'in order', 'goes on'],
    within: 200,
    focus: DELETED_LEASE,
    edits: [
      {
        file: 'controller/parts.ts',
        find: 'identity: options.identity, epoch, isReady }',
        replace: 'identity: options.identity, epoch, isReady: () => true }',
      },
    ],
  },
  {
    name: 'turns that fail for want of a protection get their indices before the predecessor is dead',
    caughtBy: ['one leader', 'in order'],
    within: 200,
    focus: {
      ...DELETED_LEASE,
      ...PLAIN,
      protections: true,
      sessionClass: { sandbox: { require: ['RunnerHardened'] } },
    },
    edits: [
      {
        file: 'controller/decide/policies/protection.ts',
        find: '  const index = freeIndex(draft);\n',
        replace: '  void freeIndex;\n  const index = draft.turns.lastIndex + 1;\n',
      },
    ],
  },
  {
    name: 'a deleted lease is taken without a wait',
    caughtBy: ['one leader', 'capacity', 'in order', 'goes on'],
    within: 200,
    focus: DELETED_LEASE,
    edits: [
      {
        file: 'controller/controller.ts',
        find: '    if (!found && !keys.created) return renewDeadlineMs(leaseMs);\n',
        replace: '    if (!found && !keys.created) return 0;\n',
      },
    ],
  },
  {
    name: 'after a deleted lease a leader waits as after an expired one',
    caughtBy: ['one leader', 'capacity', 'in order', 'goes on'],
    within: 200,
    focus: DELETED_LEASE,
    edits: [
      {
        file: 'controller/controller.ts',
        find: '    if (!found && !keys.created) return renewDeadlineMs(leaseMs);\n',
        replace: '    if (!found && !keys.created) return WRITE_DEADLINE_MS;\n',
      },
    ],
  },
  {
    name: 'a lease released by a leader that has not waited for its predecessor',
    caughtBy: ['one leader', 'capacity', 'in order', 'goes on'],
    within: 200,
    focus: {
      misfortunes: ['the lease is deleted, and its next holder is told to stop before requests of the former are over'],
      ...NEXT_HOLDER,
    },
    edits: [
      {
        file: 'controller/controller.ts',
        find: '        this.#finished = leadership.found && !leadership.takenOver;\n',
        replace: '',
      },
    ],
  },
  {
    name: 'a restarted leader does not wait for the last requests of its former process',
    caughtBy: ['one leader', 'capacity', 'in order', 'goes on'],
    within: 200,
    focus: {
      misfortunes: ['the leader is killed while its requests are held up'],
      misfortuneEveryMs: 3000,
      deedEveryMs: 150,
      rates: { watchStalled: 0 },
      ...PLAIN,
    },
    edits: [
      {
        file: 'controller/controller.ts',
        find: 'succeedsItself ? Math.max(0, this.#beganAt + writesMs - this.#options.clock.monotonic()) : writesMs',
        replace: 'succeedsItself ? 0 : writesMs',
      },
    ],
  },
  {
    name: 'a restarted leader takes the lease of a former process that had not waited for its predecessor',
    caughtBy: ['one leader', 'capacity', 'in order', 'goes on'],
    within: 200,
    focus: {
      misfortunes: ['the lease is deleted, and its next holder is killed before requests of the former are over'],
      ...NEXT_HOLDER,
    },
    edits: [
      {
        file: 'controller/runtime/lease.ts',
        find: 'this.#ofThisPlace !== undefined && isSettled && otherHolder',
        replace: 'this.#ofThisPlace !== undefined && (isSettled || true) && otherHolder',
      },
    ],
  },
  {
    name: 'a leader takes the lease of a process in another pod at once',
    caughtBy: ['one leader', 'capacity', 'in order', 'goes on'],
    within: 200,
    focus: {
      misfortunes: ['the leader is killed while its requests are held up'],
      misfortuneEveryMs: 3000,
      deedEveryMs: 300,
      rates: { watchStalled: 0 },
      ...PLAIN,
    },
    edits: [
      {
        file: 'controller/runtime/lease.ts',
        find: 'otherHolder?.startsWith(this.#ofThisPlace) === true',
        replace: 'otherHolder !== undefined',
      },
    ],
  },
  {
    name: 'a state is labelled with another incarnation than that of its pod',
    caughtBy: ['labelled'],
    within: 200,
    edits: [
      {
        file: 'controller/act/store-delivery.ts',
        find: '  return status.incarnation;',
        replace: '  return status.incarnation + Number((status.attempt ?? 1) > 1);',
      },
    ],
  },
];
