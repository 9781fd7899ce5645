import type { Bug } from './bug.ts';

/** Mistakes that change no outcome, and have the controller ask for more and more. */
export const loopBugs: readonly Bug[] = [
  {
    name: 'idle time of a session that was resumed counts from the start of its pod, whatever it has done since',
    caughtBy: ['with cause'],
    within: 60,
    edits: [
      {
        file: 'controller/decide/suspend-reason.ts',
        find: 'const since = Math.max(lastActivity(draft.world), ofCommands, Date.parse(pod.metadata.creationTimestamp));',
        replace: `const createdAt = Date.parse(pod.metadata.creationTimestamp);
  const isResumed = (session.status?.incarnation ?? 0) > 1;
  const since = isResumed ? createdAt : Math.max(lastActivity(draft.world), ofCommands, createdAt);`,
      },
    ],
  },
  {
    name: 'a status that is written although nothing has changed',
    caughtBy: ['with cause'],
    within: 60,
    edits: [
      {
        file: 'controller/act/write-session.ts',
        find: 'if (isDeepStrictEqual(plain, stored)) return undefined;',
        replace: "if (isDeepStrictEqual(plain, stored) && plain.phase !== 'Ready') return undefined;",
      },
      {
        file: 'controller/act/write-session.ts',
        find: 'if (waitMs > 0) return waitMs;',
        replace: 'if (waitMs > 0 && waitMs < Infinity) return waitMs;',
      },
    ],
  },
];
