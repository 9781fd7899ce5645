/**
 * A container image as a docker-archive, the one format that `docker load`, `ctr images import` and `kind load
 * image-archive` all take: layers, a configuration and a manifest in one tar, with no engine and no registry.
 */
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { arch } from 'node:os';
import { dirname, join } from 'node:path';
import { type Modes, writeLayer } from './layer.ts';

/** Command and settings of the image, as in the OCI image configuration. */
export interface ImageConfig {
  Entrypoint: readonly string[];
  Cmd?: readonly string[];
  Env?: readonly string[];
  User?: string;
  WorkingDir?: string;
  Labels?: Readonly<Record<string, string>>;
}

/** Image to write; `layers` are root folders, the lowest first. */
export interface Image {
  name: string;
  layers: readonly { folder: string; modes?: Modes }[];
  config: ImageConfig;
}

/** Result; `id` is the digest of the configuration (docker's image id), `bytes` the layers' total size. */
export interface ArchiveResult {
  name: string;
  file: string;
  id: string;
  layers: string[];
  bytes: number;
}

const architectures: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

/** Writes `image` to `file`, whole or not at all. The same input gives the same bytes. */
export async function writeArchive(image: Image, file: string): Promise<ArchiveResult> {
  await mkdir(dirname(file), { recursive: true });
  const work = await mkdtemp(`${file}.`);
  try {
    const content = join(work, 'content');
    await mkdir(content);
    const digests: string[] = [];
    const names: string[] = [];
    let bytes = 0;
    for (const [index, { folder, modes }] of image.layers.entries()) {
      const name = `layer-${index}.tar`;
      const layer = await writeLayer(folder, join(content, name), modes);
      names.push(name);
      digests.push(layer.digest);
      bytes += layer.size;
    }
    const config = JSON.stringify({
      architecture: architectures[arch()] ?? arch(),
      os: 'linux',
      created: '1970-01-01T00:00:00Z',
      config: image.config,
      rootfs: { type: 'layers', diff_ids: digests },
      history: digests.map(() => ({ created: '1970-01-01T00:00:00Z', created_by: 'berth images' })),
    });
    const id = createHash('sha256').update(config).digest('hex');
    await writeFile(join(content, `${id}.json`), config);
    await writeFile(
      join(content, 'manifest.json'),
      JSON.stringify([{ Config: `${id}.json`, RepoTags: [image.name], Layers: names }]),
    );
    const archive = join(work, 'archive.tar');
    await writeLayer(content, archive);
    await rename(archive, file);
    return { name: image.name, file, id: `sha256:${id}`, layers: digests, bytes };
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
