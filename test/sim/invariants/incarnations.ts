import { pods } from '../../../core/kube/resources.ts';
import { LABEL_INCARNATION, LABEL_SESSION_UID, poolOfPod } from '../../../core/resources/names.ts';
import type { MakeInvariant } from './invariant.ts';

/**
 * The pod of an incarnation is created after the session's status owns the incarnation. It is never created again once
 * a turn ran in it, because its states would get numbers that were used before.
 */
export const ownedFirst: MakeInvariant = (facts) => {
  const used = new Set<string>();
  return {
    runStarted({ sessionUID, incarnation }) {
      used.add(`${sessionUID}/${incarnation}`);
    },
    committed({ storage, type, object }) {
      const { labels, name } = object.metadata;
      const session = labels?.[LABEL_SESSION_UID];
      if (storage !== 'pods' || type !== 'ADDED' || !session) return;
      const incarnation = Number(labels[LABEL_INCARNATION]);
      const key = `${session}/${incarnation}`;
      const present = facts.session(session);
      // The pod of a deleted session is deleted like the session, with all that it stores.
      if (!present) return;
      if (used.has(key)) facts.fail('owned first', `pod ${name} is made again, and a turn ran in an earlier one`);
      const owned = present.status?.incarnation ?? 0;
      if (owned < incarnation) facts.fail('owned first', `pod ${name} is made while incarnation ${owned} is owned`);
    },
  };
};

/** A session is bound in one living pod at a time, to the incarnation that its pod was made for. */
export const boundOnce: MakeInvariant = (facts) => {
  const served = new Set<string>();
  return {
    runStarted({ podUID }) {
      served.add(podUID);
    },
    bound(bind, container) {
      const { uid, name } = bind.session;
      const pod = facts.server.list(pods).find(({ metadata }) => metadata.uid === container.podUID);
      const labels = pod?.metadata.labels ?? {};
      const label = Number(labels[LABEL_INCARNATION]);
      if (pod && (labels[LABEL_SESSION_UID] !== uid || label !== bind.incarnation))
        facts.fail(
          'bound once',
          `pod ${pod.metadata.name} is bound to session ${uid}, incarnation ${bind.incarnation}`,
        );
      for (const other of facts.kubelets.running) {
        const bound = other.container.bind;
        // A claimed pod that did not answer in time is given up, and may take its session after that: it is given no turn.
        if (isOfPool(other.pod.name) && (bound?.incarnation ?? 0) < bind.incarnation && !served.has(other.pod.uid))
          continue;
        if (other.container === container || bound?.session.uid !== uid || !facts.kubelets.isAlive(other.pod.uid))
          continue;
        facts.fail('bound once', `session ${name} is bound in ${container.podUID} and in ${other.pod.name} at once`);
      }
    },
  };
};

const isOfPool = (name: string) => poolOfPod(name) !== undefined;
