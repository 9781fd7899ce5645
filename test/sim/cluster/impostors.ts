import type { Pod } from '../../../core/kube/builtin.ts';
import { pods } from '../../../core/kube/resources.ts';
import { LABEL_SESSION_UID } from '../../../core/resources/names.ts';
import type { SimServer } from '../api/server.ts';
import type { Dice } from '../random.ts';
import type { Scheduler } from '../scheduler.ts';

/** Label of a pod that somebody has made under the name that a pod of Berth had. */
export const IMPOSTOR = 'sim/impostor';

interface Surroundings {
  scheduler: Scheduler;
  server: SimServer;
  dice: Dice;
}

/** Somebody who may create pods takes the names of pods that are gone, for a while each. */
export function impostors({ scheduler, server, dice }: Surroundings): void {
  server.onCommit(({ storage, type, object }) => {
    const { labels, name, namespace = '' } = object.metadata;
    if (storage !== 'pods' || type !== 'DELETED' || !labels?.[LABEL_SESSION_UID] || !dice.chance(0.5)) return;
    const pod: Pod = {
      metadata: { name, namespace, labels: { [IMPOSTOR]: 'yes' } },
      spec: { containers: [{ name: 'session', image: 'other' }] },
    };
    scheduler.after(dice.skewed(1, 500), undefined, `somebody takes the name of pod ${name}`, () => {
      void server.admin.create(pods, pod).then(
        ({ metadata: { uid } }) =>
          scheduler.after(dice.skewed(500, 10_000), undefined, `somebody gives the name of pod ${name} back`, () => {
            void server.admin.delete(pods, { namespace, name }, { uid, gracePeriodSeconds: 0 }).catch(() => {});
          }),
        () => {},
      );
    });
  });
}
