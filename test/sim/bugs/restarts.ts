import type { Bug } from './bug.ts';

/** Mistakes in restarts of sessions. */
export const restartBugs: readonly Bug[] = [
  {
    name: 'a restart that takes the running turn with it',
    caughtBy: ['spared'],
    within: 200,
    focus: { restarts: true },
    edits: [
      {
        file: 'controller/decide/policies/suspension.ts',
        find: 'const runs = turns.running ||',
        replace: "const runs = (turns.running && reason !== 'Restart') ||",
      },
      {
        file: 'controller/decide/suspension-veto.ts',
        find: "  return replacesPod(reason) && status?.phase !== 'Running';",
        replace: '  return replacesPod(reason) && status !== null;',
      },
    ],
  },
  {
    name: 'a restart that is never done: each pod is given up once it is bound',
    caughtBy: ['preempted', 'spared'],
    within: 200,
    focus: { restarts: true },
    edits: [
      {
        file: 'controller/decide/policies/suspension.ts',
        find: "      draft.actions.push({ do: 'CloseLink' }, { do: 'DeletePod', pod, why: 'suspended before it was bound' });\n      return 'Stop';",
        replace: '      return undefined;',
      },
      {
        file: 'controller/decide/admission.ts',
        find: '...defined({ restartRequest }),',
        replace: '...defined({ restartRequest: undefined }),',
      },
    ],
  },
];
