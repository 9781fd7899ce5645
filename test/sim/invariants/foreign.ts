import { pods } from '../../../core/kube/resources.ts';
import type { Change } from '../../../local/apiserver/store/versioned.ts';
import type { MakeInvariant } from './invariant.ts';

/** Label of objects that do not belong to Berth. */
export const FOREIGN = 'sim/foreign';

/** Objects that do not belong to Berth are never changed. */
export const untouched: MakeInvariant = (facts) => ({
  committed({ type, object }: Change) {
    if (type === 'ADDED' || !object.metadata.labels?.[FOREIGN]) return;
    facts.fail('untouched', `${object.kind ?? pods.kind} ${object.metadata.name} is not Berth's, and was ${type}`);
  },
});
