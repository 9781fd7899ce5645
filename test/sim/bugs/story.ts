import type { Bug } from './bug.ts';

/** Mistakes in what turns and sessions tell of the same wait. */
export const storyBugs: readonly Bug[] = [
  {
    name: 'a turn written Running while its pod still starts',
    caughtBy: ['runs in truth'],
    within: 200,
    edits: [
      {
        file: 'controller/decide/policies/start.ts',
        find: '    if (!isRunnerless(draft) && !isBound(draft, podUID)) return undefined;\n',
        replace: '',
      },
    ],
  },
  {
    name: 'a turn that is not told what its session waits for',
    caughtBy: ['one story'],
    within: 200,
    edits: [
      {
        file: 'controller/decide/decide.ts',
        find: '  if (!isDeleted) showWait(draft, status);',
        replace: '  void showWait;',
      },
    ],
  },
  {
    name: 'a turn that says what its session waits for only when it is the first to be written',
    caughtBy: ['one story'],
    within: 200,
    edits: [
      {
        file: 'controller/decide/turn-wait.ts',
        find: "  actions.unshift({ do: 'ShowWait', turn, status: shown });",
        replace: "  if (!turn.status.conditions) actions.unshift({ do: 'ShowWait', turn, status: shown });",
      },
    ],
  },
  {
    name: 'a turn of any image that says that it runs while its pod cannot start',
    caughtBy: ['one story'],
    within: 200,
    focus: { onlyAnyImage: true, podRates: { image: 0.3, unschedulable: 0.3 } },
    edits: [
      {
        file: 'controller/decide/turn-wait.ts',
        find: '    if (isRunnerless(draft)) showStart(draft, turn, status);\n',
        replace: '    void showStart;\n',
      },
    ],
  },
  {
    name: 'a turn of any image shown as queued taken for one that no pod has',
    caughtBy: ['starts once', 'granted', 'in order', 'told truly', 'runs in truth', 'one story'],
    within: 200,
    focus: { onlyAnyImage: true, podRates: { image: 0.3, unschedulable: 0.3 } },
    edits: [
      {
        file: 'controller/world/own-turns.ts',
        find: "  return status?.phase === 'Running' || (status?.phase === 'Queued' && status.podUID !== undefined);",
        replace: "  return status?.phase === 'Running';",
      },
    ],
  },
  {
    name: 'a lost turn that is granted its timeouts anew while it waits for its next pod',
    caughtBy: ['granted'],
    within: 200,
    focus: {
      deeds: ['edit a class'],
      deedEveryMs: 500,
      misfortunes: ['a pod is killed'],
      misfortuneEveryMs: 2000,
      podRates: { image: 0.3 },
    },
    edits: [
      {
        file: 'controller/settings/granted.ts',
        find: '  if (kept) return kept;\n',
        replace: '  void kept;\n',
      },
    ],
  },
];
