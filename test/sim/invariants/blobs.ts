import type { StoredBlob } from '../../../core/resources/kinds.ts';
import { storeKey } from '../../../core/resources/names.ts';
import { BLOBS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';

/** No blob is deleted while an existing object names it. */
export const keptWhileNamed: MakeInvariant = (facts) => ({
  committed({ storage, type, object }) {
    if (storage !== BLOBS || type !== 'DELETED') return;
    const { sessionUID, incarnation, seq } = (object as unknown as StoredBlob).spec;
    const key = storeKey(sessionUID, incarnation, seq);
    const session = facts.session(sessionUID);
    if (!session) return;
    const names = [session.status?.state?.ref];
    for (const { status } of facts.turnsOf(sessionUID)) {
      names.push(status?.outputRef, status?.log?.ref, ...(status?.artifacts ?? []).map(({ ref }) => ref));
      // The state of an earlier turn may have been replaced by a later one.
      if (status?.state && status.state.seq === seq && facts.committed.get(sessionUID)?.ref === key) names.push(key);
    }
    if (names.includes(key)) facts.fail('kept while named', `blob ${object.metadata.name} was deleted, it is needed`);
  },
});
