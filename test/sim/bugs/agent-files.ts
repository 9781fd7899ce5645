import type { Bug } from './bug.ts';

/** Mistakes with the files of agents. */
export const agentFilesBugs: readonly Bug[] = [
  {
    name: 'files given as they are at the binding, whatever the status records',
    caughtBy: ['recorded files'],
    within: 200,
    focus: { files: true },
    edits: [
      {
        file: 'controller/act/bind-contents.ts',
        find: '  if (filesDigest(configMap) === recorded) return undefined;',
        replace: '  if (filesDigest(configMap) !== undefined) return undefined;',
      },
    ],
  },
  {
    name: 'a turn that does not wait for the files',
    caughtBy: ['recorded files'],
    within: 200,
    focus: { files: true, podRates: { breaks: 0.1 } },
    edits: [
      { file: 'runner/session/session.ts', find: '    if (!this.#hasFiles) {', replace: '    if (false as boolean) {' },
    ],
  },
  {
    name: 'a turn that ends at once for want of files',
    caughtBy: ['awaited files'],
    within: 200,
    focus: { files: true },
    edits: [
      {
        file: 'controller/decide/policies/turns.ts',
        find: "    settings.reason === 'AgentFilesMissing' ||\n",
        replace: '',
      },
    ],
  },
];
