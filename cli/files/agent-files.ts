import { lstat, readdir, readFile, readlink } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import ignore, { type Ignore } from 'ignore';
import type { ConfigMap } from '../../core/kube/builtin.ts';
import { staysInside } from '../../core/links.ts';
import type { AgentFile } from '../../core/resources/agent.ts';
import { ownedBy, type StoredSession } from '../../core/resources/kinds.ts';
import { MAX_AGENT_FILES, MAX_AGENT_FILES_BYTES, MiB } from '../../core/resources/limits.ts';
import { LABEL_AGENT_FILES } from '../../core/resources/names.ts';
import { refused } from '../errors.ts';

const compress = promisify(gzip);

/** Key of the archive in the ConfigMap of a session's files. */
const ARCHIVE = 'files.tar.gz';
/** Limit of the content of a ConfigMap (MaxSecretSize of Kubernetes), bytes. */
const MAX_ARCHIVE_BYTES = MiB;
/** Size of a block of a tar archive, in which headers and contents are padded. */
const BLOCK_BYTES = 512;
/** Number of entries that an error about their size names. */
const NAMED = 5;

/**
 * Names that are packed only together with everything else. Rules of ignore files are case-sensitive; files with secrets are
 * left out in any case.
 */
const NEVER = ['.git', '.venv', 'node_modules', '__pycache__', '.[eE][nN][vV]*'];
const IGNORE_FILES = ['.gitignore', '.berthignore'];

interface Entry {
  /** Path in the archive. */
  name: string;
  /** Path on this machine. */
  path: string;
  type: 'file' | 'directory' | 'symlink';
  /** Size of a file; 0 of anything else. */
  bytes: number;
  /** Target of a link. */
  linkname?: string;
  executable: boolean;
}

/** Rules of the ignore files of a folder, and the path in the archive that they count from. */
interface Rules {
  base: string;
  rules: Ignore;
}

export interface PackOptions {
  cwd: string;
  /** True to pack also the files that are otherwise left out: those that are never packed and those that ignore files name. */
  all: boolean;
}

/**
 * Packs files and folders as a gzipped tar archive; a folder keeps its name, `.` and paths that end in `/.` stand for its
 * content. Refuses a path that does not exist, and files that are too large for a ConfigMap. Also refuses all that a runner
 * would refuse to unpack: devices and sockets, a link that leads out, too many entries, and too large an archive.
 */
export async function packFiles(paths: readonly string[], { cwd, all }: PackOptions): Promise<Buffer> {
  const entries = new Map<string, Entry>();
  for (const path of paths) {
    const full = resolve(cwd, path);
    const isContent = path === '.' || path.endsWith('/.');
    for await (const entry of walk(full, isContent ? '' : basename(full), { flag: path, all })) {
      entries.set(entry.name, entry);
      if (entries.size > MAX_AGENT_FILES) {
        throw refused(
          `--with ${path}: these are more than ${MAX_AGENT_FILES} files, folders and links; leave some out with .berthignore, or put them into the image`,
        );
      }
    }
  }
  const list = [...entries.values()];
  if (!list.some(({ type }) => type !== 'directory'))
    throw refused(`--with ${paths.join(' ')}: no file is left to pack`);
  refuseFilesAsFolders(entries);
  // The archive is at least so large. A file is read only if all can fit.
  const atLeast = list.reduce((sum, { bytes }) => sum + BLOCK_BYTES * (1 + Math.ceil(bytes / BLOCK_BYTES)), 0);
  const tooMany = (bytes: number) => tooLarge(`${bytes} bytes as a tar archive`, `${MAX_AGENT_FILES_BYTES}`, list);
  if (atLeast > MAX_AGENT_FILES_BYTES) throw tooMany(atLeast);
  const plain = await tarOf(list);
  if (plain.length > MAX_AGENT_FILES_BYTES) throw tooMany(plain.length);
  const archive = await compress(plain);
  if (archive.length > MAX_ARCHIVE_BYTES) {
    throw tooLarge(`${archive.length} bytes compressed`, `${MAX_ARCHIVE_BYTES}`, list);
  }
  return archive;
}

/** Refuses a name that is a folder in one of the paths and a file or link in another. */
function refuseFilesAsFolders(entries: ReadonlyMap<string, Entry>): void {
  for (const { name } of entries.values()) {
    const parent = entries.get(dirname(name));
    if (!parent || parent.type === 'directory') continue;
    const what = parent.type === 'file' ? 'file' : 'link';
    throw refused(
      `--with: ${JSON.stringify(parent.name)} is a folder in one of the paths and a ${what} in another; give one of them another name`,
    );
  }
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
  const stats = await read(path, `--with ${flag}`, (entry) => lstat(entry));
  const common = { name, path, executable: (stats.mode & 0o111) !== 0 };
  if (stats.isFile()) yield { ...common, type: 'file', bytes: stats.size };
  else if (stats.isSymbolicLink()) {
    const linkname = await read(path, `--with ${flag}`, (link) => readlink(link));
    if (!staysInside(name, linkname)) {
      throw refused(
        `--with ${flag}: the link ${JSON.stringify(name)} leads to ${JSON.stringify(linkname)}, which is not among the files of a session; put a copy in its place, or leave it out with .berthignore`,
      );
    }
    yield { ...common, type: 'symlink', bytes: 0, linkname };
  } else if (!stats.isDirectory()) throw refused(`--with ${flag}: ${path} is neither a file, a folder nor a link`);
  else {
    if (name !== '') yield { ...common, type: 'directory', bytes: 0 };
    const rules = all ? [] : [...above, await rulesIn(path, name)];
    const children = await read(path, `--with ${flag}`, (folder) => readdir(folder, { withFileTypes: true }));
    for (const child of children.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const below = name === '' ? child.name : `${name}/${child.name}`;
      if (isIgnored(child.isDirectory() ? `${below}/` : below, rules)) continue;
      yield* walk(join(path, child.name), below, { flag, all, above: rules });
    }
  }
}

/** Reads something of a path; refuses the path where that fails. */
async function read<T>(path: string, flag: string, reading: (path: string) => Promise<T>): Promise<T> {
  try {
    return await reading(path);
  } catch (error) {
    // Node decodes a name that is not UTF-8 with replacement characters, and finds no such file then.
    const why = path.includes('\ufffd')
      ? 'its name is not UTF-8; give it another'
      : (error as NodeJS.ErrnoException).code;
    throw refused(`${flag}: ${path} cannot be read (${why})`);
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
  for (const { name, path, type, executable, linkname } of entries) {
    const mode = type === 'directory' || executable ? 0o555 : 0o444;
    const header = { name, mode, mtime: new Date(0) };
    if (type === 'file') archive.entry(header, await read(path, '--with', (file) => readFile(file)));
    else if (type === 'directory') archive.entry({ ...header, type });
    else archive.entry({ ...header, type, linkname: linkname as string });
  }
  archive.finalize();
  await collected;
  return Buffer.concat(pieces);
}

const configMapOf = (session: string): string => `${session}-files`;

/** Source of the files of a session of this name. `suffix`: for files that take the place of earlier ones, in a ConfigMap of their own. */
export function filesSource(session: string, suffix?: string): AgentFile {
  return { configMap: `${configMapOf(session)}${suffix === undefined ? '' : `-${suffix}`}`, archive: ARCHIVE };
}

/** Reports whether a source of a session of this name is one of `filesSource`. */
export function isFilesSource({ configMap, archive }: AgentFile, session: string): boolean {
  const suffix = configMap?.startsWith(configMapOf(session)) ? configMap.slice(configMapOf(session).length) : undefined;
  return archive === ARCHIVE && suffix !== undefined && /^(-[a-z0-9]+)?$/.test(suffix);
}

/** Returns the ConfigMap with an archive of `packFiles` for this source, which is deleted together with the session. */
export function filesOf(
  archive: Buffer,
  session: StoredSession,
  { configMap }: AgentFile = filesSource(session.metadata.name),
): ConfigMap {
  const { name, namespace } = session.metadata;
  return {
    metadata: {
      name: configMap ?? configMapOf(name),
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
