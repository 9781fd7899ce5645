/** Helpers of the end-to-end tests: the cluster's tools, a namespace per test, and waits. */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import type { TestContext } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { tools } from '../../support/tools.ts';
import { look, pathOf } from './look.ts';

export const checkout = join(import.meta.dirname, '..', '..', '..');
export const release = 'berth';
export const releaseNamespace = 'berth-system';

export interface Finished {
  code: number;
  stdout: string;
  stderr: string;
}

export interface RunOptions {
  input?: string;
  /** Default: the checkout. */
  cwd?: string;
  env?: Record<string, string>;
  timeoutMs?: number;
}

/** Runs a program to its end, whatever its exit code. */
export function finish(file: string, args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, ...options.env };
    const settings = {
      env,
      cwd: options.cwd ?? checkout,
      timeout: options.timeoutMs ?? 600_000,
      maxBuffer: 64 * 1024 * 1024,
    };
    const child = execFile(file, args, settings, (error, stdout, stderr) => {
      if (error?.killed) reject(new Error(`${file} ${args.join(' ')} took too long\n${stderr}`, { cause: error }));
      else if (error && typeof error.code !== 'number') reject(error);
      else resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
    });
    // A program that needs no input may be gone before it is written.
    child.stdin?.on('error', () => {});
    child.stdin?.end(options.input ?? '');
  });
}

/**
 * Client errors that mean that an API server, or the way to it, is briefly unavailable, for example on a starved machine
 * or after a restart of the control plane. They say nothing about the request.
 */
const PASSING =
  /was refused - did you|Unable to connect to the server|connection refused|connection reset by peer|connection lost|TLS handshake timeout|i\/o timeout|\bEOF$|etcdserver: |unable to handle the request|request did not complete within|unable to return a response in the time allotted/m;
/** Commands that can be given twice without harm. `delete` is one with --ignore-not-found. */
const REPEATABLE = new Set([
  ...['annotate', 'apply', 'auth', 'config', 'cordon', 'drain', 'get', 'label', 'logs', 'patch', 'rollout', 'scale'],
  ...['template', 'uncordon', 'upgrade', 'wait'],
]);
const AGAIN_MS = 500;
/** Pause between two looks of a wait, which are not to keep the cluster busy. */
export const EVERY_MS = 100;
const PATIENCE_MS = 60_000;

/** Runs kubectl or Helm to its end, whatever its exit code; again where it could not even ask and may. */
async function ask(file: string, args: readonly string[], options?: RunOptions): Promise<Finished> {
  const [command = ''] = args;
  const isToken = command === 'create' && args[1] === 'token';
  const mayRepeat = REPEATABLE.has(command) || isToken || args.includes('--ignore-not-found');
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const finished = await finish(file, args, options);
    const passes = finished.code !== 0 && PASSING.test(finished.stderr);
    if (!passes || !mayRepeat || performance.now() > deadline) return finished;
    await after(AGAIN_MS);
  }
}

async function succeed(file: string, args: readonly string[], options?: RunOptions): Promise<string> {
  const { code, stdout, stderr } = await ask(file, args, options);
  if (code !== 0) throw new Error(`${file} ${args.join(' ')} ended with ${code}\n${stderr}${stdout}`);
  return stdout;
}

/** kubectl to its end, whatever its exit code. */
export async function tryKubectl(args: readonly string[], options?: RunOptions): Promise<Finished> {
  return ask((await tools()).kubectl, args, options);
}

/** stdout of kubectl; rejects with its stderr when it fails. */
export async function kubectl(args: readonly string[], options?: RunOptions): Promise<string> {
  return succeed((await tools()).kubectl, args, options);
}

export async function helm(args: readonly string[], options?: RunOptions): Promise<string> {
  return succeed((await tools()).helm, args, options);
}

/** Has objects deleted and does not wait for it; what is not there is gone already. */
export async function remove(...what: string[]): Promise<void> {
  await kubectl(['delete', ...what, '--wait=false', '--ignore-not-found']);
}

/** The CLI as people run it, on the cluster of KUBECONFIG. */
export function berth(args: readonly string[], options?: RunOptions): Promise<Finished> {
  return finish(join(checkout, 'bin/berth'), args, options);
}

// biome-ignore lint/suspicious/noExplicitAny: objects of any kind, read field by field
export type Any = any;

/** What `kubectl get -o json` shows with these arguments. */
export async function get(args: readonly string[]): Promise<Any> {
  const path = pathOf(args);
  return path === undefined ? JSON.parse(await kubectl(['get', ...args, '-o', 'json'])) : look(path);
}

export async function apply(...objects: object[]): Promise<void> {
  await kubectl(['apply', '-f', '-'], { input: JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }) });
}

/**
 * A namespace of the test's own that takes pods, gone with the test. It refuses every pod that is not as the restricted standard
 * wants it, or another that is given: admission may go by old labels for a while where they are changed.
 */
export async function makeNamespace(t: TestContext, enforce = 'restricted'): Promise<string> {
  const name = `e2e-${randomBytes(4).toString('hex')}`;
  const labels = { 'pod-security.kubernetes.io/enforce': enforce };
  await apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
  t.onTestFinished(() => remove('namespace', name));
  await takesPods(name);
  return name;
}

/**
 * Resolves once pods can be made in a new namespace: the controller manager gives it the service account that they need. One that
 * has lost its API server or etcd is started again after a pause and waits for its old lease, longer than Berth waits for the account.
 */
export async function takesPods(namespace: string): Promise<void> {
  await until(namespace, 'serviceaccount', 'default', () => true, 300_000);
}

/** A Session of `namespace`; without an agent it runs a shell that answers with its input. */
export function session(namespace: string, name: string, spec: object = {}): object {
  const agent = { command: ['sh', '-c', 'cat'], input: 'Text', result: 'Text' };
  return { apiVersion: 'berth.dev/v1alpha1', kind: 'Session', metadata: { namespace, name }, spec: { agent, ...spec } };
}

export function turn(namespace: string, name: string, of: string, input: unknown, spec: object = {}): object {
  const metadata = { namespace, name };
  return { apiVersion: 'berth.dev/v1alpha1', kind: 'Turn', metadata, spec: { session: of, input, ...spec } };
}

/** The turn once it has ended. */
export function ended(namespace: string, name: string, timeoutMs = 180_000): Promise<Any> {
  return until(namespace, 'turn', name, (found) => found.status?.finishedAt !== undefined, timeoutMs);
}

/** The object once `check` holds; rejects with how it last looked. */
export async function until(
  namespace: string,
  kind: string,
  name: string,
  check: (object: Any) => unknown,
  timeoutMs = 120_000,
): Promise<Any> {
  let last: Any;
  try {
    return await eventually(
      async () => {
        last = await get([kind, name, '-n', namespace]);
        return check(last) ? last : undefined;
      },
      { timeoutMs, everyMs: EVERY_MS, what: `${kind} ${namespace}/${name}` },
    );
  } catch (error) {
    throw new Error(`${(error as Error).message}; last seen:\n${JSON.stringify(last?.status, null, 2)}`, {
      cause: error,
    });
  }
}

/**
 * stdout of a command in a pod's container, which can be run twice. A kubelet may not know yet what is running, and the way to it
 * may break: asked again until the command was run.
 */
export async function inContainer(
  namespace: string,
  pod: string,
  container: string,
  command: string[],
): Promise<string> {
  const args = ['exec', pod, '-n', namespace, '-c', container, '--', ...command];
  const { said } = await eventually(async () => ({ said: await kubectl(args) }), {
    timeoutMs: 120_000,
    what: `${command.join(' ')} in pod ${namespace}/${pod}`,
  });
  return said;
}

/** Resolves once `text` is in the log of a pod. */
export async function said(namespace: string, pod: string, text: string): Promise<void> {
  await eventually(async () => (await kubectl(['logs', pod, '-n', namespace])).includes(text), {
    timeoutMs: 180_000,
    what: `pod ${pod} says ${text}`,
  });
}

/** The pods of the release's controller. */
export async function controllerPods(): Promise<Any[]> {
  return (await get(['pods', '-n', releaseNamespace, '-l', 'app.kubernetes.io/component=controller'])).items;
}

/** Of these pods the one that a holder of the controller's lease runs in. */
export function podOf(holder: string | undefined, pods: readonly Any[]): Any {
  return pods.find(({ metadata }) => holder?.startsWith(`${metadata.name}_`));
}

/** The ready pod of the controller that holds the lease. */
export function leadingPod(): Promise<Any> {
  return eventually(
    async () => {
      const { spec } = await get(['lease', 'berth-controller', '-n', releaseNamespace]);
      const pod = podOf(spec.holderIdentity, await controllerPods());
      const isReady = pod?.status.conditions?.some(({ type, status }: Any) => type === 'Ready' && status === 'True');
      return isReady && !pod.metadata.deletionTimestamp ? pod : undefined;
    },
    { timeoutMs: 180_000, what: 'a ready controller leads' },
  );
}
