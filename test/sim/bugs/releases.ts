import type { Bug } from './bug.ts';

/** Sessions have many turns, and only releases change. */
const OFTEN = { releases: true, deeds: [], deedEveryMs: 300, misfortunes: [] };

/** Mistakes with what a runner reports of itself. */
export const releaseBugs: readonly Bug[] = [
  {
    name: 'a runner that is not understood goes on',
    caughtBy: ['understood'],
    within: 200,
    focus: OFTEN,
    edits: [
      {
        file: 'controller/decide/suspend-reason.ts',
        find: "  if (keeps && isRunnerOutdated(draft.world)) return 'RunnerOutdated';\n",
        replace: '  void isRunnerOutdated;\n',
      },
    ],
  },
  {
    name: 'a runner that is not understood gets one more turn while its last result is written down',
    caughtBy: ['understood'],
    within: 200,
    focus: OFTEN,
    edits: [
      {
        file: 'controller/decide/policies/suspension.ts',
        find: "      return wanted && replacesPod(wanted) ? 'Stop' : undefined;",
        replace: '      return undefined;',
      },
    ],
  },
  {
    name: 'a turn given beside the binding, before the runner has reported what its class requires',
    caughtBy: ['protected first'],
    within: 200,
    focus: { protections: true },
    edits: [
      {
        file: 'controller/decide/decide.ts',
        find: "  { policy: awaitReport, only: 'WithRunner' },",
        replace: '  ...(awaitReport ? [] : []),',
      },
    ],
  },
];
