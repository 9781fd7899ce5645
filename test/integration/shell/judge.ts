/** Runs texts by real bash as they are and as they are rewritten, and tells what differs. */
import { spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Pair {
  original: string;
  rewritten: string;
}

export interface Verdict {
  pair: Pair;
  /** Differences between the two runs. */
  differences: string[];
  /** Number of `$!` in the rewritten text that equal the pid that the process itself reported. */
  pidsKept: number;
}

/** Bashes that run texts at once. */
const CONCURRENCY = 2;
const SIDES = ['o', 'r'] as const;
type Side = (typeof SIDES)[number];

/**
 * A program for the texts to start. It tells its own pid and its parent's, so that a waiting subshell shows, and prints
 * all else that it sees.
 */
const PROBE = `#!/bin/sh
echo "$1 $$ $PPID" >> "$PROBES"
printf 'probe'
[ $# = 0 ] || printf ' <%s>' "$@"
echo " in \${PWD##*/} FOO=\${FOO-} BAR=\${BAR-}"
exit "\${CODE-0}"
`;

/** Creates the files that every text finds in its folder. */
function furnish(folder: string): void {
  mkdirSync(join(folder, 'd', 'e'), { recursive: true });
  writeFileSync(join(folder, 'f1'), 'one\ntwo\n');
  writeFileSync(join(folder, 'run.sh'), '#!/bin/sh\necho "run.sh is $0"\n', { mode: 0o755 });
  writeFileSync(join(folder, 'bare'), 'echo "bare is $0"\n', { mode: 0o755 });
}

/**
 * Runs the scripts in the folders that come on stdin. A pipe that everything a text starts holds open tells when the last
 * of it has ended; what does not end makes this end with 9.
 */
const RUNNER = `
while IFS= read -r folder; do
  IFS= read -r -d '' text < "$folder/text"
  cd "$folder/w" || exit 8
  { PROBES=$folder/probes BANGS=$folder/bangs "$BASH" -c "$text" bash 7>&1 >../stdout 2>../stderr </dev/null; echo $? >../status
  } | { read -r -t 60; test $? -le 128 || exit 9; } || exit 9
done
`;

/** The bin folder that is first on the PATH of each text. */
export function binFolder(): string {
  const bin = mkdtempSync(join(tmpdir(), 'berth-shell-bin-'));
  writeFileSync(join(bin, 'probe'), PROBE);
  chmodSync(join(bin, 'probe'), 0o755);
  return bin;
}

export function pathWith(bin: string): string {
  return `${bin}:/usr/bin:/bin`;
}

/** Tells whether this bash parses the text, as the driver checks before it runs a rewritten one. */
export function parses(text: string, bin: string): boolean {
  return spawnSync('bash', ['-p', '-n', '-c', text], { env: environment(bin) }).status === 0;
}

function environment(bin: string): Record<string, string> {
  return { PATH: pathWith(bin), HOME: bin, LANG: 'C.UTF-8', LC_ALL: 'C.UTF-8', TIMEFORMAT: 'timed' };
}

/**
 * Compares all pairs. Lines of texts that are `Unordered` may come in any order and their numbers differ. Rejects when a text
 * does not end.
 */
export async function judge(
  pairs: Pair[],
  bin: string,
  order: 'Ordered' | 'Unordered' = 'Ordered',
): Promise<Verdict[]> {
  const root = mkdtempSync(join(tmpdir(), 'berth-shell-'));
  try {
    const jobs: string[][] = Array.from({ length: CONCURRENCY }, () => []);
    pairs.forEach((pair, index) => {
      for (const side of SIDES) {
        const folder = folderOf(root, index, side);
        furnish(join(folder, 'w'));
        writeFileSync(join(folder, 'text'), side === 'o' ? pair.original : pair.rewritten);
        jobs[index % CONCURRENCY]?.push(folder);
      }
    });
    await Promise.all(jobs.map((folders) => runAll(folders, bin)));
    return pairs.map((pair, index) => compare(pair, root, index, order));
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

const folderOf = (root: string, index: number, side: Side) => join(root, String(index), side);

function runAll(folders: string[], bin: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const env = environment(bin);
    const child = spawn('bash', ['-c', RUNNER], { env, detached: true, stdio: ['pipe', 'inherit', 'inherit'] });
    child.once('error', reject);
    child.once('exit', (code) => {
      if (code === 0) return resolve();
      process.kill(-(child.pid as number), 'SIGKILL');
      const last = folders.findLast((folder) => exists(join(folder, 'stdout')));
      const text = last && readFileSync(join(last, 'text'), 'utf8');
      reject(new Error(`a text did not end (${code}):\n${text}`));
    });
    child.stdin.on('error', () => {});
    child.stdin.end(`${folders.join('\n')}\n`);
  });
}

function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

/** Returns the output, files and programs of a run, in a form that can be compared. */
function traces(folder: string): Record<string, string> {
  const text = (name: string) => readFileSync(join(folder, name), 'latin1').replaceAll(folder, '<folder>');
  return {
    stdout: text('stdout'),
    stderr: text('stderr'),
    status: text('status'),
    files: JSON.stringify(tree(join(folder, 'w'), ''), null, 1).replaceAll(folder, '<folder>'),
    // Tags of the probes that ran, sorted, without their process ids.
    probes: lines(folder, 'probes')
      .map((line) => line.split(' ')[0])
      .sort()
      .join(' '),
  };
}

function tree(root: string, path: string): [string, string][] {
  return readdirSync(join(root, path))
    .sort()
    .flatMap((name): [string, string][] => {
      const inner = join(path, name);
      const full = join(root, inner);
      const stat = lstatSync(full);
      const mode = stat.mode.toString(8);
      if (stat.isDirectory()) return [[inner, mode], ...tree(root, inner)];
      if (stat.isSymbolicLink()) return [[inner, readlinkSync(full)]];
      return [[inner, stat.isFile() ? `${mode} ${readFileSync(full, 'latin1')}` : mode]];
    });
}

function lines(folder: string, name: string): string[] {
  const path = join(folder, name);
  return exists(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : [];
}

function compare(pair: Pair, root: string, index: number, order: 'Ordered' | 'Unordered'): Verdict {
  const folder = folderOf(root, index, 'r');
  const original = traces(folderOf(root, index, 'o'));
  const rewritten = traces(folder);
  const form = (text = '') =>
    order === 'Ordered'
      ? text
      : text
          .replaceAll(/\d{3,}/g, '<number>')
          .split('\n')
          .sort()
          .join('\n');
  const differences = Object.keys(original)
    .filter((name) => form(original[name]) !== form(rewritten[name]))
    .map((name) => `${name}:\n--- original\n${original[name]}\n--- rewritten\n${rewritten[name]}`);
  const { kept, wrong } = pids(pair.rewritten, folder);
  return { pair, differences: [...differences, ...wrong], pidsKept: kept };
}

/** Checks that each `$!` a text reports is the pid of its process, and that this process is a child of the shell. */
function pids(rewritten: string, folder: string): { kept: number; wrong: string[] } {
  const probes = lines(folder, 'probes').map((line) => line.split(' '));
  // "tag $! pid-of-the-shell"
  const bangs = lines(folder, 'bangs').map((line) => line.split(' '));
  let kept = 0;
  const wrong: string[] = [];
  for (const [tag, bang, shell] of bangs) {
    const isRewritten = new RegExp(`exec (env \\S+ |nice )?probe ${tag}\\b`).test(rewritten);
    const own = probes.filter(([name]) => name === tag);
    // Fewer processes than pids: a list ended before its last command.
    if (!isRewritten || own.length < bangs.filter(([name]) => name === tag).length) continue;
    if (own.some(([, pid, parent]) => pid === bang && parent === shell)) kept += 1;
    else wrong.push(`${tag}: $! is ${bang} of shell ${shell}, the processes are ${own.join(' ')}`);
  }
  return { kept, wrong };
}
