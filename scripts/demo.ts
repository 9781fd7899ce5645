/**
 * `make demo`: a session from its first turn to waking up again, on an embedded cluster of its own that is removed at
 * the end. Every printed line comes from the real cluster; anything unexpected ends the demo with an error.
 */

import assert from 'node:assert/strict';
import { type SpawnOptions, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { KubeClient } from '../core/kube/client.ts';
import { loadConnection } from '../core/kube/config.ts';
import { pods } from '../core/kube/resources.ts';
import { sessions } from '../core/resources/kinds.ts';
import { silentLogger, systemClock, systemRandom } from '../core/system.ts';

const ROOT = join(import.meta.dirname, '..');
const EXAMPLES = join(ROOT, 'examples');
const BERTH = [process.execPath, '--disable-warning=ExperimentalWarning', join(ROOT, 'cli', 'main.ts')] as const;
const LIMIT_MS = 60_000;

const began = performance.now();
const home = mkdtempSync(join(tmpdir(), 'berth-demo-'));
const { KUBECONFIG: _, ...own } = process.env;
const env = { ...own, BERTH_HOME: home };
const stop = new AbortController();
const coloured = process.stdout.isTTY && !process.env.NO_COLOR;
const dim = (words: string) => (coloured ? `\x1b[2m${words}\x1b[0m` : words);
const bold = (words: string) => (coloured ? `\x1b[1m${words}\x1b[0m` : words);

function say(sentence: string): void {
  console.log(`\n${dim(`${((performance.now() - began) / 1000).toFixed(1).padStart(5)} s`)}  ${sentence}`);
}

function note(fact: string): void {
  console.log(`         ${dim(`# ${fact}`)}`);
}

async function capture(command: readonly string[], options: SpawnOptions = {}) {
  const [program = '', ...args] = command;
  const child = spawn(program, args, { cwd: EXAMPLES, env, signal: stop.signal, stdio: 'pipe', ...options });
  const ended = new Promise<number>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve(code ?? 1));
  });
  const [stdout, stderr, code] = await Promise.all([text(child.stdout!), text(child.stderr!), ended]);
  return { stdout, stderr, code };
}

/** Shows and runs a command as a person would type it, with its output and duration; returns its stdout. */
async function show(words: string, command: readonly string[]): Promise<string> {
  const start = performance.now();
  const { stdout, stderr, code } = await capture(command);
  console.log(`         ${bold(`$ ${words}`)}${dim(`   # ${Math.round(performance.now() - start)} ms`)}`);
  if (stdout) console.log(stdout.trimEnd().replace(/^(?=.)/gm, '         '));
  if (code !== 0) throw new Error(`"${words}" ended with exit code ${code}:\n${stderr}`);
  return stdout;
}

const berth = (words: string, args = words.split(' ')) => show(`bin/berth ${words}`, [...BERTH, ...args]);
const turn = (note: string) => berth(`turn notes --text '${note}'`, ['turn', 'notes', '--text', note]);

async function overview(): Promise<void> {
  const cache = `--cache-dir=${join(home, 'kubectl')}`;
  const kubectl = ['kubectl', '--kubeconfig', join(home, 'kubeconfig'), cache, 'get', 'sessions,turns'];
  const there = await capture(['kubectl', 'version', '--client']).then(
    ({ code }) => code === 0,
    () => false,
  );
  if (there) await show('kubectl get sessions,turns', kubectl);
  else {
    await berth('list');
    await berth('list turns');
  }
}

/** Returns the pid of the session's pod, which is a process here. */
async function podProcess(api: KubeClient): Promise<number> {
  const session = await api.get(sessions, { namespace: 'default', name: 'notes' });
  const pod = await api.get(pods, { namespace: 'default', name: session.status?.podName ?? '' });
  const pid = Number(/^process:\/\/(\d+)$/.exec(pod.status?.containerStatuses?.[0]?.containerID ?? '')?.[1]);
  assert.ok(lives(pid), `the pod's process ${pid} is not there`);
  return pid;
}

function lives(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function demo(): Promise<void> {
  say('An embedded cluster: the Kubernetes API, Berth’s controller and HTTP API; pods are processes of this machine.');
  await berth('local up --detach');
  const api = new KubeClient({
    connection: await loadConnection({ path: join(home, 'kubeconfig') }),
    clock: systemClock,
    random: systemRandom,
    log: silentLogger,
    userAgent: 'berth-demo',
  });
  try {
    say('A session: any program that reads a request and prints its answer between two markers.');
    await berth('create notes -- node notes.mjs', ['create', 'notes', '--', process.execPath, 'notes.mjs']);

    say('A turn goes in; the agent’s answer comes out.');
    assert.deepEqual(JSON.parse(await turn('buy milk')), { notes: ['buy milk'] });

    say('What it printed around its answer did not get in the way; it is the turn’s log.');
    assert.match(await berth('logs notes'), /noise: turn 1, incarnation 1\n.*noise: bye/s);
    await overview();

    const first = await podProcess(api);
    say(`The session’s pod is process ${first}. Suspended, it is gone; the session’s state is stored.`);
    await berth('suspend notes');
    assert.ok(!lives(first), `process ${first} is still there`);
    const { status } = await api.get(sessions, { namespace: 'default', name: 'notes' });
    assert.ok(status?.state, 'no state is stored');
    note(`process ${first} is gone; ${status.state.bytes} bytes of state are stored`);
    await overview();

    say('The next turn wakes it: another process, and it remembers.');
    assert.deepEqual(JSON.parse(await turn('call Ann')), { notes: ['buy milk', 'call Ann'] });
    const second = await podProcess(api);
    assert.notEqual(second, first);
    note(`its pod is process ${second} now`);
    await overview();
  } finally {
    await api.close();
  }
}

const timer = setTimeout(() => stop.abort(new Error(`the demo took longer than ${LIMIT_MS / 1000} s`)), LIMIT_MS);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop.abort(new Error('interrupted')));
try {
  await demo();
} catch (error) {
  process.exitCode = 1;
  const cause = stop.signal.aborted ? stop.signal.reason : error;
  console.error(`\nThe demo did not go as it should: ${(cause as Error).message}`);
} finally {
  clearTimeout(timer);
  const { code, stderr } = await capture([...BERTH, 'local', 'down'], { signal: AbortSignal.timeout(LIMIT_MS) });
  if (code !== 0) {
    process.exitCode = 1;
    console.error(`The cluster could not be stopped; what it left is in ${home}:\n${stderr}`);
  } else rmSync(home, { recursive: true, force: true });
}
if (!process.exitCode) say('Stopped, and everything is removed. Next: README.md, “Your own agent”.');
