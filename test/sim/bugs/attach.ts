import type { Bug } from './bug.ts';

/** Mistakes in opening attaches, and in closing that of an idle runner. */
export const attachBugs: readonly Bug[] = [
  {
    name: 'the attach of a runner is closed although its turn runs',
    caughtBy: ['settles', 'works', 'in time'],
    within: 200,
    focus: { attachLingerSeconds: 1 },
    edits: [
      {
        file: 'controller/link/view.ts',
        find: "return phase === 'Bound' && answered === true && !isBusy;",
        replace: "return phase === 'Bound' && answered === true && (!isBusy || active !== undefined);",
      },
    ],
  },
  {
    name: 'a closed attach is not opened for what is to be sent',
    caughtBy: ['settles', 'works', 'in time'],
    within: 200,
    focus: { attachLingerSeconds: 1 },
    edits: [
      {
        file: 'controller/link/attachment.ts',
        find: '      this.#wake();\n      return;\n',
        replace: '      return;\n',
      },
    ],
  },
  {
    name: 'an attach that is open keeps its place among those that are being opened',
    caughtBy: ['settles', 'works', 'in time'],
    within: 200,
    focus: { attachesPerNode: 1, attachLingerSeconds: 3600 },
    edits: [
      {
        file: 'controller/link/attachment.ts',
        find: '      this.#leave = leave;\n',
        replace: '',
      },
    ],
  },
  {
    name: 'an attach that failed keeps its place among those that are being opened',
    caughtBy: ['settles', 'works', 'in time'],
    within: 200,
    focus: { attachesPerNode: 1 },
    edits: [
      {
        file: 'controller/link/attachment.ts',
        find: '        leave();\n        if (signal.aborted) return;\n',
        replace: '        if (signal.aborted) return;\n',
      },
    ],
  },
  {
    name: 'each attach of a silence is given up as early as the first',
    caughtBy: ['given up for silence'],
    within: 200,
    focus: { misfortunes: ['a pod is frozen'] },
    edits: [
      {
        file: 'controller/link/attachment.ts',
        find: '        silence.attaches += 1;\n',
        replace: '',
      },
    ],
  },
  {
    name: 'time without an attach counts as silence',
    caughtBy: ['given up for silence'],
    within: 200,
    focus: { misfortunes: ['a pod is frozen'], misfortuneEveryMs: 2000, attachesPerNode: 1 },
    edits: [
      {
        file: 'controller/link/attachment.ts',
        find: '      const since = this.silentSince;\n',
        replace: '      const since = this.#silence?.since;\n',
      },
    ],
  },
  {
    name: 'the silence of a whole node counts as that of each of its runners',
    caughtBy: ['given up for silence'],
    within: 200,
    focus: {
      misfortunes: ['all pods of a node are frozen'],
      misfortuneEveryMs: 20_000,
      faultyMs: 120_000,
      nodeGraceSeconds: 60,
    },
    edits: [
      {
        file: 'controller/observed/link-view.ts',
        find: 'nodeSilent ? Math.max(UNRESPONSIVE_MS, nodeGraceMs) : UNRESPONSIVE_MS',
        replace: 'nodeSilent ? UNRESPONSIVE_MS : UNRESPONSIVE_MS',
      },
    ],
  },
];
