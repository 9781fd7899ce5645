import { pods } from '../../../core/kube/resources.ts';
import type { Change } from '../../../local/apiserver/store/versioned.ts';
import type { MakeInvariant } from './invariant.ts';

/** The label of what stands around and belongs to nobody here. */
export const FOREIGN = 'sim/foreign';

/** What is not Berth's is never touched. */
export const untouched: MakeInvariant = (facts) => ({
  committed({ type, object }: Change) {
    if (type === 'ADDED' || !object.metadata.labels?.[FOREIGN]) return;
    facts.fail('untouched', `${object.kind ?? pods.kind} ${object.metadata.name} is not Berth's, and was ${type}`);
  },
});
