/** The Helm release that the tests run against. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ArchiveResult } from '../../../images/archive.ts';
import { eventually } from '../../support/eventually.ts';
import { type Any, checkout, get, helm, kubectl, release, releaseNamespace } from './cluster.ts';

const COMPONENTS = ['controller', 'api'] as const;

/** Name of an image; those of earlier releases have no registry. */
const IMAGE_NAME = /^(?:(?<registry>.*)\/)?berth\/(?<component>[^/:]+):(?<tag>[^/:]+)$/;

/** Charts and images of a release. */
export interface Built {
  chart: string;
  /** Chart of its CRDs. Absent in releases whose chart has them itself. */
  crds?: string | undefined;
  images: readonly Pick<ArchiveResult, 'name' | 'id'>[];
}

/** Charts and images of the checkout. */
async function ownRelease(): Promise<Built> {
  const images = JSON.parse(await readFile(join(checkout, 'build/images.json'), 'utf8'));
  return { chart: join(checkout, 'charts/berth'), crds: join(checkout, 'charts/berth-crds'), images };
}

/** Installs or changes the release and its CRDs with the chart's defaults and `values` (as for `--set-json`), and waits until it is ready. */
export async function install(values: Record<string, unknown> = {}, built?: Built): Promise<void> {
  const { chart, crds, images } = built ?? (await ownRelease());
  const components = COMPONENTS.filter((component) => values[`${component}.enabled`] !== false);
  const settings: Record<string, unknown> = { ...values };
  for (const component of components) {
    const names = images.map(({ id, name }) => ({ id, parts: IMAGE_NAME.exec(name)?.groups }));
    const image = names.find(({ parts }) => parts?.component === component);
    if (!image) throw new Error(`there is no image of ${component}`);
    settings['image.registry'] = image.parts?.registry ?? '';
    settings['image.tag'] = image.parts?.tag;
    // The tag stays the same while the image changes: the annotation is what makes new pods.
    settings[`${component}.podAnnotations`] = { 'berth.dev/image-id': image.id };
  }
  const sets = Object.entries(settings).flatMap(([path, value]) => ['--set-json', `${path}=${JSON.stringify(value)}`]);
  const upgrade = (name: string, from: string, ...more: string[]) => {
    const where = ['--namespace', releaseNamespace, '--create-namespace'];
    return helm(['upgrade', '--install', name, from, ...where, '--take-ownership', ...more]);
  };
  if (crds) await upgrade(`${release}-crds`, crds, '--wait');
  await upgrade(release, chart, '--wait', '--timeout', '480s', ...sets);
  for (const component of components) {
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
