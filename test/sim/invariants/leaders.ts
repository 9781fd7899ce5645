import type { StoredTurn } from '../../../core/resources/kinds.ts';
import type { ControllerCall } from '../observer.ts';
import type { Facts } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';
import { Terms } from './terms.ts';

/**
 * Leaders give indices and turns one after the other: no write of an earlier leader to a session or a turn is carried out
 * after a later one has begun to give, not even one that the API server then refuses for its version. The later leader
 * would otherwise have decided by outdated reads.
 */
export const oneLeader: MakeInvariant = (facts) => {
  const terms = new Terms(facts);
  const gave: { process: string; number: number; what: string }[] = [];

  return {
    sent(call) {
      const what = givenBy(facts, call);
      const number = terms.of(call.process);
      if (what && number > 0) gave.push({ process: call.process, number, what });
    },
    called({ process, verb, resource, name }) {
      if (verb === 'get' || verb === 'list' || (resource !== 'sessions' && resource !== 'turns')) return;
      const number = terms.of(process);
      const later = gave.find((one) => one.number > number && one.process !== process);
      if (!later || number === 0) return;
      facts.fail(
        'one leader',
        `the ${verb} of ${resource} ${name} by ${process} is carried out after ${later.process} has given ${later.what}`,
      );
    },
    committed(change) {
      terms.see(change, facts.callBehind(change));
    },
  };
};

/** Describes the index or the pod that a write gives a turn; undefined for none. A deleted turn keeps both. */
function givenBy(facts: Facts, call: ControllerCall): string | undefined {
  if (call.verb !== 'replace' || call.resource !== 'turns') return undefined;
  const was = facts.turns.get(call.object?.metadata.uid ?? '')?.status;
  const is = (call.object as StoredTurn).status;
  if (is?.index !== undefined && is.index !== was?.index) return `index ${is.index} to turn ${call.name}`;
  if (is?.phase === 'Running' && is.podUID !== was?.podUID) return `turn ${call.name} to pod ${is.podUID}`;
  return undefined;
}
