/** The Helm release that the tests run against. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '../../support/eventually.ts';
import { type Any, checkout, get, helm, kubectl, release, releaseNamespace } from './cluster.ts';

/** Installs or changes the release with the chart's defaults and `values` (as for `--set-json`), and waits until it is ready. */
export async function install(values: Record<string, unknown> = {}): Promise<void> {
  // The tag stays the same while the image changes: the annotation is what makes new pods.
  const images = JSON.parse(await readFile(join(checkout, 'build/images.json'), 'utf8'));
  const settings: Record<string, unknown> = { ...values };
  for (const component of ['controller', 'api']) {
    const { id } = images.find(({ name }: { name: string }) => name.startsWith(`berth/${component}:`));
    settings[`${component}.podAnnotations`] = { 'berth.dev/image-id': id };
  }
  const sets = Object.entries(settings).flatMap(([path, value]) => ['--set-json', `${path}=${JSON.stringify(value)}`]);
  await helm([
    ...['upgrade', '--install', release, join(checkout, 'charts/berth'), '--namespace', releaseNamespace],
    ...['--create-namespace', '--take-ownership', '--wait', '--timeout', '480s', ...sets],
  ]);
  for (const component of ['controller', 'api']) {
    const deployment = `deployment/${release}-${component}`;
    await kubectl(['rollout', 'status', deployment, '-n', releaseNamespace, '--timeout=300s']);
  }
  // The waits above end when the new pods are ready. The old pods may still answer.
  await eventually(
    async () => {
      const { items } = await get(['pods', '-n', releaseNamespace]);
      return items.every(({ metadata }: Any) => !metadata.deletionTimestamp);
    },
    { timeoutMs: 180_000, what: 'the pods before are gone' },
  );
}
