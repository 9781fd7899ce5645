import type { Pod } from '../../core/kube/builtin.ts';
import { pods } from '../../core/kube/resources.ts';
import { isReady } from './floors.ts';
import type { Ground } from './ground.ts';
import { Watched } from './watched.ts';

/** Pods that start at once for a rate. */
const STARTS = 20;

/**
 * Pods a second that the nodes start: pods as the template, whose runner waits for a session that never comes, created at once,
 * until all are Ready.
 */
export async function startsPerSecond({ cluster }: Ground, template: Pod): Promise<number> {
  const { client, namespace } = cluster;
  const { nodeName: _, ...spec } = template.spec;
  const names = Array.from({ length: STARTS }, (_, i) => `start-${i}`);
  const watched = await Watched.open(client, pods, namespace);
  try {
    const started = performance.now();
    await Promise.all(
      names.map((name) => {
        const pod: Pod = { apiVersion: 'v1', kind: 'Pod', metadata: { namespace, name }, spec };
        return watched.timed(name, () => client.create(pods, pod), isReady);
      }),
    );
    return STARTS / ((performance.now() - started) / 1000);
  } finally {
    watched.close();
    await Promise.all(names.map((name) => client.delete(pods, { namespace, name })));
    await cluster.noPods();
  }
}
