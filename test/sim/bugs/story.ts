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
    name: 'a turn given to its runner before it is written Running',
    caughtBy: ['starts once'],
    within: 200,
    edits: [
      {
        file: 'controller/decide/policies/start.ts',
        find: "    draft.actions.push({ do: 'WriteTurn', turn, status: running(turn, facts, now) });",
        replace: `    if (link) draft.actions.push({ do: 'StartTurn', turn });
    draft.actions.push({ do: 'WriteTurn', turn, status: running(turn, facts, now) });`,
      },
      {
        file: 'controller/act/start-turn.ts',
        find: " || status?.phase !== 'Running') return;",
        replace: ' || !status) return;',
      },
      {
        file: 'controller/act/start-turn.ts',
        find: 'const { index = 0, attempt = 1, podUID } = status;',
        replace: "const { index = 0, attempt = 1, podUID = world.pod?.metadata.uid ?? '' } = status;",
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
        file: 'controller/observed/own-turns.ts',
        find: "  return status?.phase === 'Running' || (status?.phase === 'Queued' && status.podUID !== undefined);",
        replace: "  return status?.phase === 'Running';",
      },
    ],
  },
];
