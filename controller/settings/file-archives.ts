import { promisify } from 'node:util';
import { gzip, gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import type { ConfigMap } from '../../core/kube/builtin.ts';
import { type AgentFile, isFilePath } from '../../core/resources/agent.ts';
import { KiB } from '../../core/resources/limits.ts';
import { LABEL_AGENT_FILES } from '../../core/resources/names.ts';
import { noConfigMap } from './agent-files.ts';

/** Maximum size that is compressed in this thread: the handover to another thread would take longer. */
const SMALL_BYTES = 64 * KiB;

/** A file to be packed: its path below BERTH_AGENT_DIR, its content and whether it may be executed. */
interface File {
  path: string;
  content: Buffer;
  executable: boolean;
}

/** The files of an agent are not there as the session names them; the message names the ConfigMap and says what to do. */
export class AgentFilesError extends Error {}

/**
 * Packs the sources of an agent's files: one gzipped tar archive for each, in their order. `configMaps` holds those of the
 * session's namespace that are named. Throws an AgentFilesError. Equal sources give equal bytes.
 */
export async function fileArchives(
  sources: readonly AgentFile[],
  configMaps: ReadonlyMap<string, ConfigMap>,
): Promise<Buffer[]> {
  const archives: Buffer[] = [];
  for (const source of sources) {
    const { inline, archive } = source;
    if (inline) archives.push(await packed(Object.entries(inline).map(([path, text]) => plainFile(path, text))));
    else if (archive === undefined) archives.push(await packed(filesOf(source, readable(source, configMaps))));
    else archives.push(contentOf(readable(source, configMaps), archive));
  }
  return archives;
}

function plainFile(path: string, text: string): File {
  return { path, content: Buffer.from(text), executable: false };
}

/** The ConfigMap that the source names. One without the label counts as absent: Berth reads no others. */
function readable({ configMap = '' }: AgentFile, configMaps: ReadonlyMap<string, ConfigMap>): ConfigMap {
  const found = configMaps.get(configMap);
  if (found?.metadata.labels?.[LABEL_AGENT_FILES] === 'true') return found;
  throw new AgentFilesError(noConfigMap(configMap));
}

function filesOf({ items }: AgentFile, configMap: ConfigMap): File[] {
  const keys = Object.keys({ ...configMap.data, ...configMap.binaryData }).sort();
  const wanted = items ?? keys.map((key) => ({ key, path: key, mode: undefined }));
  return wanted.map(({ key, path, mode = 0o444 }) => ({
    path,
    content: contentOf(configMap, key),
    executable: (mode & 0o111) !== 0,
  }));
}

function contentOf({ metadata, data, binaryData }: ConfigMap, key: string): Buffer {
  const binary = binaryData?.[key];
  if (binary !== undefined) return Buffer.from(binary, 'base64');
  const text = data?.[key];
  if (text !== undefined) return Buffer.from(text);
  throw new AgentFilesError(
    `agent.files: ConfigMap "${metadata.name}" has no key "${key}"; name one that it has, or add it`,
  );
}

async function packed(files: readonly File[]): Promise<Buffer> {
  const archive = pack();
  const made = new Set<string>();
  for (const { path, content, executable } of files) {
    if (!isFilePath(path)) throw new AgentFilesError(`agent.files: ${JSON.stringify(path)} is no relative path`);
    for (const directory of parentsOf(path)) {
      if (!made.has(directory)) archive.entry({ name: directory, type: 'directory', mode: 0o555, mtime: EPOCH });
      made.add(directory);
    }
    archive.entry({ name: path, mode: executable ? 0o555 : 0o444, mtime: EPOCH }, content);
  }
  archive.finalize();
  const pieces: Buffer[] = [];
  for await (const piece of archive as AsyncIterable<Buffer>) pieces.push(piece);
  const plain = Buffer.concat(pieces);
  return plain.length <= SMALL_BYTES ? gzipSync(plain) : promisify(gzip)(plain);
}

const EPOCH = new Date(0);

/** Directories on the way to a path, the outermost first. */
function parentsOf(path: string): string[] {
  const parts = path.split('/').slice(0, -1);
  return parts.map((_, i) => parts.slice(0, i + 1).join('/'));
}
