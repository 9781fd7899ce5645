import assert from 'node:assert/strict';
import { Ledger } from '../../../../controller/capacity/ledger.ts';
import type { Applicant } from '../../../../controller/observed/capacity-view.ts';
import { SeenCluster } from '../../../support/seen.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

/** A ledger over caches that are changed by hand; `told` has the sessions that it has requeued. */
export function setUp(options: { max?: number; before?: (caches: SeenCluster) => void; closed?: boolean } = {}) {
  const caches = new SeenCluster();
  options.before?.(caches);
  const told: string[] = [];
  const clock = new VirtualClock();
  const ledger = new Ledger({
    caches,
    clock,
    maxRunning: options.max,
    epoch: () => 7,
    suspendAgainAt: () => undefined,
    onChange: (key) => told.push(key),
  });
  if (!options.closed) ledger.open();
  const see = {
    /** A session that was admitted with this pod, or has none any more. */
    admitted: (key: string, podName: string | undefined, ofClass = 'default') => {
      caches.add(key, { spec: { class: ofClass }, status: podName ? { podName, incarnation: 1 } : {} });
      ledger.sessionChanged(key);
    },
    deleted: (key: string) => {
      caches.sessions.delete(key);
      ledger.sessionChanged(key);
    },
    pod: (namespace: string, name: string, change: Parameters<SeenCluster['addPod']>[2] = {}) =>
      ledger.podChanged(caches.addPod(namespace, name, change), false),
    gone: (namespace: string, name: string) => {
      const pod = caches.pod(namespace, name);
      caches.pods.delete(`${namespace}/${name}`);
      if (pod) ledger.podChanged(pod, true);
    },
  };
  return { caches, ledger, told, clock, see };
}

/** Reports whether the session would get a slot for a new pod. */
export const available = (ledger: Ledger, applicant: Applicant) => ledger.assess(applicant, 'next') === 'Available';
/** Returns why the session would get none. */
export const whyNot = (ledger: Ledger, applicant: Applicant) => {
  const place = ledger.assess(applicant, 'next');
  assert.ok(typeof place === 'object', `${applicant.key} has a place`);
  return place;
};
