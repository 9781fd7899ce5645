import { type Bug, PLAIN } from './bug.ts';

/** Mistakes about what clients do inside sessions. */
export const visitBugs: readonly Bug[] = [
  {
    name: 'a command does not keep its session from being idle',
    caughtBy: ['preempted'],
    within: 100,
    focus: { visitors: true },
    edits: [
      {
        file: 'controller/decide/suspend-reason.ts',
        find: 'Math.min(link.commandActivity ?? 0, now)',
        replace: 'Math.min(0, now)',
      },
      {
        file: 'controller/decide/suspension-veto.ts',
        find: "reason === 'Idle' ? (world.link?.commandActivity ?? 0) : 0,",
        replace: '0,',
      },
    ],
  },
  {
    name: 'a command keeps its session from a suspension that was asked for',
    caughtBy: ['settles', 'with cause'],
    within: 100,
    focus: { visitors: true, deeds: ['ask a session to suspend once'] },
    edits: [
      {
        file: 'controller/decide/suspension-veto.ts',
        find: '  if (isDue(reason)) return undefined;',
        replace: "  if (isDue(reason)) return (world.link?.commandActivity ?? 0) > askedAt ? 'activity' : undefined;",
      },
    ],
  },
  {
    name: 'a command keeps its session from giving its slot to another',
    caughtBy: ['settles', 'with cause'],
    within: 100,
    focus: { visitors: true, maxRunning: 1, session: { timeouts: { turn: '60s' }, persistence: {} }, ...PLAIN },
    edits: [
      {
        file: 'controller/decide/suspension-veto.ts',
        find: "reason === 'Idle' ? (world.link?.commandActivity ?? 0) : 0,",
        replace: 'world.link?.commandActivity ?? 0,',
      },
    ],
  },
  {
    name: 'a leader that attaches to a pod which was bound before hears nothing of its commands',
    caughtBy: ['preempted'],
    within: 100,
    focus: {
      visitors: true,
      misfortunes: ['a controller is killed', 'a controller is told to stop'],
      misfortuneEveryMs: 5000,
    },
    edits: [
      {
        file: 'controller/link/view.ts',
        find: '(pong.commandIdleMs !== undefined ? {',
        replace: '(pong.commandIdleMs !== undefined && !view.resumed ? {',
      },
    ],
  },
  {
    name: 'a look at the commands of a session keeps it from being idle',
    caughtBy: ['settles'],
    within: 100,
    focus: { visitors: true },
    edits: [
      {
        file: 'runner/commands/commands.ts',
        find: '  #list(visit: Visit): void {\n',
        replace: '  #list(visit: Visit): void {\n    this.#lastActivity = this.#options.clock.monotonic();\n',
      },
    ],
  },
];
