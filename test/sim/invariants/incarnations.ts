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

/**
 * A session is bound in one living pod at a time, to the incarnation that its pod was made for. A claimed pod that did not
 * answer in time is given up, and may take its session after that: it is given no turn.
 */
export const boundOnce: MakeInvariant = (facts) => {
  const served = new Set<string>();
  const givenUp = new Set<string>();
  return {
    runStarted({ podUID, turn }) {
      served.add(podUID);
      if (givenUp.has(podUID))
        facts.fail('bound once', `turn ${turn} runs in pod ${podUID}, which was claimed and given up`);
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
      const own = facts.kubelets.running.find((one) => one.container === container)?.pod;
      for (const other of facts.kubelets.running) {
        const bound = other.container.bind;
        if (other.container === container || bound?.session.uid !== uid || !facts.kubelets.isAlive(other.pod.uid))
          continue;
        // Either bind may come first, as lines are delayed.
        const older = bind.incarnation < bound.incarnation ? own : other.pod;
        if (bind.incarnation !== bound.incarnation && older && isOfPool(older.name) && !served.has(older.uid)) {
          givenUp.add(older.uid);
          continue;
        }
        facts.fail('bound once', `session ${name} is bound in ${container.podUID} and in ${other.pod.name} at once`);
      }
    },
  };
};

const isOfPool = (name: string) => poolOfPod(name) !== undefined;
