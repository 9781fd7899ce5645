import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import { promisify } from 'node:util';
import { parseRequirements, RequirementsError, requirementProblem } from '../../core/environments/requirements.ts';
import { canonicalJson } from '../../core/json.ts';
import { isAlreadyExists, isNotFound } from '../../core/kube/errors.ts';
import { podText } from '../../core/pod-log/session-text.ts';
import type { EnvironmentSpec } from '../../core/resources/environment.ts';
import { environments, type StoredEnvironment, sessions } from '../../core/resources/kinds.ts';
import type { Cli } from '../cli.ts';
import type { KubeCluster } from '../cluster/cluster.ts';
import { CliError, refused } from '../errors.ts';
import { decode } from '../input/input.ts';

export interface RequirementFlags {
  requirements?: string;
  python?: string;
}

/**
 * Reads a requirements file, - for stdin, or the lock of a uv project. Refuses what an Environment does not take, with its
 * line.
 */
export async function readRequirements(file: string, cli: Cli): Promise<string[]> {
  let text: string;
  try {
    const bytes = file === '-' ? await readAll(cli.stdin) : await readFile(resolve(cli.cwd, file));
    text = decode(bytes, `--requirements ${file}`);
    if (PROJECT_FILES.has(basename(file))) text = await exported(file, cli);
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw refused(`--requirements ${file}: it cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
  try {
    if (!PYLOCK.test(basename(file))) return parseRequirements(text);
    const { requirementsOfLock } = await import('./pylock.ts');
    return parseRequirements(requirementsOfLock(text));
  } catch (error) {
    if (error instanceof RequirementsError) throw refused(`--requirements ${file}: ${error.message}`);
    throw error;
  }
}

/** Name of a lock: `pylock.toml` or `pylock.NAME.toml` (PEP 751). */
export const PYLOCK = /^pylock(\.[^.]+)?\.toml$/;
/** Files of a uv project, whose packages uv lists. */
const PROJECT_FILES: ReadonlySet<string> = new Set(['uv.lock', 'pyproject.toml']);
const EXPORT_MS = 120_000;
const EXPORT = ['export', '--quiet', '--format', 'requirements-txt', '--no-dev', '--no-header', '--no-annotate'];

/** Returns the packages of the uv project of this file as requirements with hashes; uv locks a project that has no lock. */
async function exported(file: string, cli: Cli): Promise<string> {
  const uv = cli.env.BERTH_UV ?? 'uv';
  const project = dirname(resolve(cli.cwd, file));
  const args = [...EXPORT, '--no-emit-project', '--no-emit-workspace', '--project', project];
  const frozen = basename(file) === 'uv.lock' ? ['--frozen'] : [];
  const options = { cwd: project, env: cli.env, signal: cli.interrupted, timeout: EXPORT_MS, maxBuffer: 2 ** 26 };
  try {
    return (await promisify(execFile)(uv, [...args, ...frozen], options)).stdout;
  } catch (error) {
    if (cli.interrupted.aborted) throw cli.interrupted.reason;
    const { code, stderr } = error as { code?: unknown; stderr?: string };
    if (code === 'ENOENT') {
      throw refused(
        `--requirements ${file}: needs uv, and "${uv}" is not there; install it, name it in BERTH_UV, or give a file by \`uv export --format requirements-txt --no-emit-project\``,
      );
    }
    throw refused(`--requirements ${file}: uv cannot read the project: ${(stderr || String(error)).trim()}`);
  }
}

/** Requirements given as words of the command line. */
export function checkedRequirements(words: readonly string[]): string[] {
  return words.map((word) => {
    const text = word.trim().replace(/\s+/g, ' ');
    const problem = requirementProblem(text);
    if (problem) throw refused(problem);
    return text;
  });
}

/** Returns the name of the Environment with these requirements. */
export function environmentName(spec: EnvironmentSpec): string {
  return `req-${createHash('sha256').update(canonicalJson(spec)).digest('hex').slice(0, 20)}`;
}

/** Creates the Environment if it does not exist. */
export async function ensureEnvironment(
  { name, spec }: { name: string; spec: EnvironmentSpec },
  { api, namespace }: KubeCluster,
  cli: Cli,
): Promise<void> {
  const environment = { metadata: { name, namespace }, spec };
  try {
    await api.create(environments, environment as unknown as StoredEnvironment, { signal: cli.interrupted });
    cli.say(`environment ${name}`);
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    // Anybody who may create Environments can have taken the name.
    const { spec: there } = await api.get(environments, environment.metadata, { signal: cli.interrupted });
    if (canonicalJson(there) !== canonicalJson(spec)) {
      throw refused(`environment "${name}" has the name of these requirements and holds others; delete it`);
    }
  }
}

/** Returns the Environment; refuses a name that does not exist. */
export async function getEnvironment(
  { api, namespace }: KubeCluster,
  name: string,
  signal: AbortSignal,
): Promise<StoredEnvironment> {
  try {
    return await api.get(environments, { namespace, name }, { signal });
  } catch (error) {
    if (isNotFound(error)) throw refused(`there is no environment "${name}" in namespace ${namespace}`);
    throw error;
  }
}

/** Pod of the build of an Environment, and the lines that it has printed so far; neither where no pod has begun to build it. */
export async function buildLines(
  name: string,
  cluster: KubeCluster,
  signal: AbortSignal,
): Promise<{ pod?: string; lines: string[] }> {
  const { api, namespace } = cluster;
  const { status } = await getEnvironment(cluster, name, signal);
  if (status?.phase !== 'Building' || !status.build) return { lines: [] };
  const { metadata, status: build } = await api.get(sessions, { namespace, name: status.build }, { signal });
  const { podName: pod, incarnation = 0 } = build ?? {};
  if (!pod) return { lines: [] };
  let text = '';
  for await (const piece of podText(api, { namespace, name: pod, session: metadata.uid, incarnation }, { signal }))
    text += piece;
  return { pod, lines: text.split('\n').slice(0, -1) };
}

async function readAll(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces);
}
