import { isDeepStrictEqual } from 'node:util';
import type { KubeObject } from '../../../core/kube/types.ts';
import { environments, sessionpools, sessions, turns } from '../../../core/resources/kinds.ts';
import type { ControllerCall } from '../observer.ts';
import type { MakeInvariant } from './invariant.ts';

/** Virtual milliseconds within which calls are counted. */
const WINDOW_MS = 10_000;
/** Most calls of one kind in that time. A failure that is retried with back-off comes to half of it. */
const MOST = 20;
/** Most reads of one pod in that time: the log of a pod is opened between two of them. */
const MOST_OF_A_POD = 2 * MOST;

/** Kinds whose changes are no cause: a controller's own election, and its reports to people. */
const APART: ReadonlySet<string> = new Set(['leases', 'events']);
const WITH_STATUS = [sessions, turns, environments, sessionpools] as const;

/**
 * Nothing is asked for without cause. No status is written as it is, and no process makes the same call again and again while nothing
 * is written in its namespace. Such a loop harms nobody in a small world, and the API server in a large one.
 */
export const withCause: MakeInvariant = (facts) => {
  /** Namespace → call of a process, since the last write there → its times, virtual milliseconds. */
  const asked = new Map<string, Map<string, number[]>>();

  const present = ({ resource, namespace, name }: ControllerCall): KubeObject | undefined => {
    const kind = WITH_STATUS.find(({ plural }) => plural === resource);
    return kind && facts.server.get(kind as typeof sessions, namespace, name);
  };

  return {
    sent({ process, verb, resource, namespace = '', name, fieldSelector, labelSelector, continue: place }) {
      // The next page of a list is asked for because there is more.
      if (APART.has(resource) || place !== undefined) return;
      const { now } = facts.kubelets;
      const here = asked.get(namespace) ?? new Map<string, number[]>();
      asked.set(namespace, here);
      // A read before each of several writes has its cause, also where the writes come too late. The writes themselves are counted.
      const isRead = verb === 'get' || verb === 'list';
      if (!isRead) for (const key of here.keys()) if (isReadOf(process, key)) here.delete(key);
      const what = [verb, resource, name, fieldSelector, labelSelector].filter(Boolean).join(' ');
      const times = (here.get(`${process} ${what}`) ?? []).filter((at) => at > now - WINDOW_MS);
      here.set(`${process} ${what}`, [...times, now]);
      if (times.length < (verb === 'get' && resource === 'pods' ? MOST_OF_A_POD : MOST)) return;
      const count = `${times.length + 1} times in ${((now - (times[0] ?? now)) / 1000).toFixed(1)} s`;
      facts.fail(
        'with cause',
        `${process} asks ${count} to ${what} in namespace "${namespace}", where nothing changes`,
      );
    },
    called(call) {
      const { status, metadata } = (call.object ?? {}) as KubeObject & { status?: object };
      if (call.verb !== 'replace' || !status) return;
      const before = present(call) as (KubeObject & { status?: object }) | undefined;
      const isAtItsVersion = before?.metadata.resourceVersion === metadata.resourceVersion;
      if (isAtItsVersion && isDeepStrictEqual(plain(status), plain(before?.status)))
        facts.fail('with cause', `${call.process} writes the status of ${call.resource} ${call.name} as it is`);
    },
    committed({ storage, object }) {
      const [plural = ''] = storage.split('.');
      if (APART.has(plural)) return;
      const { namespace } = object.metadata;
      // What has no namespace may concern all of them.
      if (namespace === undefined) asked.clear();
      else asked.delete(namespace);
    },
  };
};

const isReadOf = (process: string, key: string) =>
  key.startsWith(`${process} get `) || key.startsWith(`${process} list `);

/** The value as it is sent. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value ?? null));
