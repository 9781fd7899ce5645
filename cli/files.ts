import { lstat, readdir, readFile, readlink } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import ignore, { type Ignore } from 'ignore';
import type { ConfigMap } from '../core/kube/builtin.ts';
import type { AgentFile } from '../core/resources/agent.ts';
import { ownedBy, type StoredSession } from '../core/resources/kinds.ts';
import { MiB } from '../core/resources/limits.ts';
import { LABEL_AGENT_FILES } from '../core/resources/names.ts';
import { refused } from './errors.ts';

const compress = promisify(gzip);

/** Key of the archive in the ConfigMap of a session's files. */
const ARCHIVE = 'files.tar.gz';
/** Limit of the content of a ConfigMap (MaxSecretSize of Kubernetes), bytes. */
const MAX_ARCHIVE_BYTES = MiB;
/** Limit of the files before they are compressed, which is what a runner unpacks. */
const MAX_PLAIN_BYTES = 64 * MiB;
const MAX_ENTRIES = 20_000;
/** Number of entries that an error about their size names. */
const NAMED = 5;

/** Never packed unless everything is. Rules of ignore files tell cases apart; files with secrets are left out in any case. */
const NEVER = ['.git', '.venv', 'node_modules', '__pycache__', '.[eE][nN][vV]*'];
const IGNORE_FILES = ['.gitignore', '.berthignore'];

interface Entry {
  /** Path in the archive. */
  name: string;
  /** Path on this machine. */
  path: string;
  type: 'file' | 'directory' | 'symlink';
  bytes: number;
  executable: boolean;
}

/** Rules of the ignore files of a folder, and the path in the archive that they count from. */
interface Rules {
  base: string;
  rules: Ignore;
}

export interface PackOptions {
  cwd: string;
  /** True to pack also what is never packed and what ignore files name. */
  all: boolean;
}

/**
 * Packs files and folders as a gzipped tar archive; a folder keeps its name, `.` and paths that end in `/.` stand for its
 * content. Refuses what does not exist, what is neither file, folder nor link, and what is too large for a ConfigMap.
 */
export async function packFiles(paths: readonly string[], { cwd, all }: PackOptions): Promise<Buffer> {
  const entries = new Map<string, Entry>();
  for (const path of paths) {
    const full = resolve(cwd, path);
    const isContent = path === '.' || path.endsWith('/.');
    for await (const entry of walk(full, isContent ? '' : basename(full), { flag: path, all })) {
      entries.set(entry.name, entry);
      if (entries.size > MAX_ENTRIES) throw refused(`--with ${path}: these are more than ${MAX_ENTRIES} files`);
    }
  }
  const list = [...entries.values()];
  if (!list.some(({ type }) => type !== 'directory'))
    throw refused(`--with ${paths.join(' ')}: no file is left to pack`);
  const plain = list.reduce((sum, { bytes }) => sum + bytes, 0);
  if (plain > MAX_PLAIN_BYTES) throw tooLarge(`${plain} bytes`, `${MAX_PLAIN_BYTES}`, list);
  const archive = await compress(await tarOf(list));
  if (archive.length > MAX_ARCHIVE_BYTES) {
    throw tooLarge(`${archive.length} bytes compressed`, `${MAX_ARCHIVE_BYTES}`, list);
  }
  return archive;
}

function tooLarge(size: string, limit: string, entries: readonly Entry[]): Error {
  const largest = [...entries].sort((a, b) => b.bytes - a.bytes).slice(0, NAMED);
  const named = largest.map(({ name, bytes }) => `${JSON.stringify(name)} (${bytes} bytes)`).join(', ');
  return refused(
    `--with: the files have ${size}; at most ${limit} fit. The largest are ${named}; leave some out with .berthignore, or put them into the image`,
  );
}

async function* walk(
  path: string,
  name: string,
  { flag, all, above = [] }: { flag: string; all: boolean; above?: readonly Rules[] },
): AsyncGenerator<Entry> {
  const stats = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    throw refused(`--with ${flag}: ${path} cannot be read (${error.code})`);
  });
  const common = { name, path, executable: (stats.mode & 0o111) !== 0 };
  if (stats.isFile()) yield { ...common, type: 'file', bytes: stats.size };
  else if (stats.isSymbolicLink()) yield { ...common, type: 'symlink', bytes: 0 };
  else if (!stats.isDirectory()) throw refused(`--with ${flag}: ${path} is neither a file, a folder nor a link`);
  else {
    if (name !== '') yield { ...common, type: 'directory', bytes: 0 };
    const rules = all ? [] : [...above, await rulesIn(path, name)];
    for (const child of (await readdir(path, { withFileTypes: true })).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const below = name === '' ? child.name : `${name}/${child.name}`;
      if (isIgnored(child.isDirectory() ? `${below}/` : below, rules)) continue;
      yield* walk(join(path, child.name), below, { flag, all, above: rules });
    }
  }
}

async function rulesIn(folder: string, base: string): Promise<Rules> {
  // As git on Linux: `build` is another name than `BUILD`. The library's default is git's on other systems.
  const rules = ignore({ allowRelativePaths: true, ignorecase: false }).add(NEVER);
  for (const file of IGNORE_FILES) {
    rules.add(await readFile(join(folder, file), 'utf8').catch(() => ''));
  }
  return { base, rules };
}

/** Reports whether the rules leave a path out; those of the folder nearest to it decide first, as with git. */
function isIgnored(name: string, all: readonly Rules[]): boolean {
  for (const { base, rules } of [...all].reverse()) {
    const { ignored, unignored } = rules.test(base === '' ? name : name.slice(base.length + 1));
    if (ignored || unignored) return ignored;
  }
  return false;
}

async function tarOf(entries: readonly Entry[]): Promise<Buffer> {
  const { pack } = await import('tar-stream');
  const archive = pack();
  const pieces: Buffer[] = [];
  const collected = (async () => {
    for await (const piece of archive as AsyncIterable<Buffer>) pieces.push(piece);
  })();
  for (const { name, path, type, executable } of entries) {
    const mode = type === 'directory' || executable ? 0o555 : 0o444;
    const header = { name, mode, mtime: new Date(0) };
    if (type === 'file') archive.entry(header, await readFile(path));
    else if (type === 'directory') archive.entry({ ...header, type });
    else archive.entry({ ...header, type, linkname: await readlink(path) });
  }
  archive.finalize();
  await collected;
  return Buffer.concat(pieces);
}

const configMapOf = (session: string): string => `${session}-files`;

/** Source of the files of `filesOf` for a session of this name. */
export function filesSource(session: string): AgentFile {
  return { configMap: configMapOf(session), archive: ARCHIVE };
}

/** Returns the ConfigMap with an archive of `packFiles`, which is deleted together with the session. */
export function filesOf(archive: Buffer, session: StoredSession): ConfigMap {
  const { name, namespace } = session.metadata;
  return {
    metadata: {
      name: configMapOf(name),
      namespace,
      labels: { [LABEL_AGENT_FILES]: 'true' },
      ownerReferences: [ownedBy(session)],
    },
    immutable: true,
    binaryData: { [ARCHIVE]: archive.toString('base64') },
  };
}

/** Returns the ConfigMap with an archive for sessions whose files are those of `filesSource(name)`. No session owns it. */
export function sharedFiles(
  archive: Buffer,
  { name, namespace, labels }: { name: string; namespace: string; labels: Record<string, string> },
): ConfigMap {
  return {
    metadata: { name: configMapOf(name), namespace, labels: { ...labels, [LABEL_AGENT_FILES]: 'true' } },
    immutable: true,
    binaryData: { [ARCHIVE]: archive.toString('base64') },
  };
}
