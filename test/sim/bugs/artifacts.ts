import type { Bug } from './bug.ts';

/** Mistakes with what turns leave in BERTH_OUTPUT_DIR. */
export const artifactBugs: readonly Bug[] = [
  {
    name: 'artifacts stored after the commit',
    caughtBy: ['has its artifacts'],
    within: 200,
    edits: [
      {
        file: 'controller/act/store-delivery.ts',
        find: "  const ref = await put(context, 'Artifacts', { incarnation, seq }, content);",
        replace: `  const ref = storeKey(context.world.session.metadata.uid, incarnation, seq);
  context.effects.clock.setTimer(1, () => void put(context, 'Artifacts', { incarnation, seq }, content));`,
      },
    ],
  },
  {
    name: 'artifacts of an earlier turn',
    caughtBy: ['has its artifacts'],
    within: 200,
    edits: [{ file: 'runner/turn/turn.ts', find: '      if (isFirstHere) output?.empty();\n', replace: '' }],
  },
  {
    name: 'artifacts of whichever turn came first',
    caughtBy: ['has its artifacts'],
    within: 200,
    edits: [
      {
        file: 'controller/link/inbox.ts',
        find: '    for (const seq of [...this.#frames.keys()]) if (seq <= through) this.#frames.delete(seq);',
        replace:
          "    for (const [seq, { frame }] of [...this.#frames]) if (seq <= through && frame.kind !== 'artifacts') this.#frames.delete(seq);",
      },
      {
        file: 'controller/link/inbox.ts',
        find: 'artifactsSeq === undefined ? undefined : this.#frames.get(artifactsSeq)?.frame;',
        replace:
          "artifactsSeq === undefined ? undefined : [...this.#frames.values()].find(({ frame }) => frame.kind === 'artifacts')?.frame;",
      },
    ],
  },
  {
    name: 'a result committed without the artifacts that it names',
    caughtBy: ['has its artifacts'],
    within: 200,
    edits: [
      {
        file: 'controller/act/store-delivery.ts',
        find: '  if (message.artifactsSeq !== undefined) {',
        replace: '  if (message.artifactsSeq !== undefined && message.artifactsSeq % 5 !== 0) {',
      },
    ],
  },
  {
    name: 'artifacts swept while their turn is kept',
    caughtBy: ['kept while named'],
    within: 200,
    edits: [
      {
        file: 'controller/garbage/facts.ts',
        find: '    refs: [status.outputRef, status.log?.ref, ...(status.artifacts ?? []).map(({ ref }) => ref)].filter(',
        replace: '    refs: [status.outputRef, status.log?.ref].filter(',
      },
      {
        file: 'controller/garbage/stored.ts',
        find: 'export const MIN_AGE_MS = 3_600_000;',
        replace: 'export const MIN_AGE_MS = 1000;',
      },
    ],
  },
];
