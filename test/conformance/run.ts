/** One run: a scenario by one client, with at most one fault; and what has to hold of it. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { turns } from '../../core/resources/kinds.ts';
import { isTerminal, type TurnPhase } from '../../core/resources/turn-phases.ts';
import { type Bench, listedNames } from './bench.ts';
import type { Client } from './clients.ts';
import { checkFollowed, type Followed } from './followed.ts';
import { CUT_SHORT, type Exchange, type Fault, NEEDS_PATIENCE } from './proxy/faults.ts';
import { FaultyProxy } from './proxy/proxy.ts';
import { filled, type Scenario, type Step } from './scenario.ts';

/** The shortest limit of a client that waits for what does not come; and by how much it is above what the slowest answer has taken without a fault. */
const IMPATIENT_MS = 1_500;
const SLOWER = 5;
/** Limits of a client that has to take its time on a busy machine. Milliseconds. */
const PATIENT = { attemptMs: 30_000, silenceMs: 30_000 };
const IMPATIENT_WAIT_MS = 500;
/** Time that `late` is beyond the client's limit. */
const LATE_MS = 1_000;
const BACKOFF = { baseMs: 20, maxMs: 200 };
const DEADLINE_MS = 60_000;
/** Limit of a run, for one that hangs. */
const RUN_MS = 90_000;
/** The same limits for a scenario that takes long. */
const LONG_DEADLINE_MS = 500_000;
const LONG_RUN_MS = 600_000;
/** Time for which `$expiring` is valid, seconds. */
const EXPIRING_S = 20;
/** Time to end for a process that has nothing to do any more: shorter than every limit of the client by itself. */
const EXIT_MS = 10_000;
/** Requests that a fault may cost. */
const MORE_REQUESTS = 10;

export interface Planned {
  scenario: Scenario;
  client: Client;
  fault?: Fault | undefined;
  /** Exchanges of the clean run; a run with a fault is held to them. */
  clean?: readonly Exchange[] | undefined;
}

interface StepLine {
  step: number;
  value?: unknown;
  error?: { class: string; code?: string; message: string; isOwn: boolean };
  aborted?: true;
}

interface Said {
  steps: StepLine[];
  left: string[] | undefined;
  text: string;
  exit: number | string | null;
}

/** Resolves with the exchanges of the run, and whether its fault was made. Rejects where something does not hold. */
export async function performed(
  bench: Bench,
  lane: string,
  { scenario, client, fault, clean }: Planned,
): Promise<{ exchanges: readonly Exchange[]; wasMade: boolean }> {
  const run = `run-${randomUUID().slice(0, 8)}`;
  const folder = mkdtempSync(join(tmpdir(), 'berth-conformance-'));
  const tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, bench.token);
  const names = {
    run,
    folder,
    tokenFile,
    token: bench.token,
    wrong: bench.wrongToken,
    expiring: bench.expiringToken(EXPIRING_S),
    warm: lane,
    content: bench.artifact,
  };
  const isImpatient = fault !== undefined && NEEDS_PATIENCE.includes(fault.name);
  const slowestMs = Math.max(0, ...answeredAtOnce(clean ?? []).map(({ headMs }) => headMs));
  const limitMs = Math.ceil(Math.max(IMPATIENT_MS, SLOWER * slowestMs));
  await bench.free(lane);
  for (const { expect } of scenario.steps) if (expect?.listed) await bench.list(expect.listed);
  let child: ChildProcess | undefined;
  /** Why the API has not come again after it was killed. */
  let notStarted: unknown;
  const isProgram = fault?.name === 'kill' || Object.keys(scenario.server).length > 0;
  let port = isProgram ? await bench.program(scenario.server) : bench.port;
  const proxy = await FaultyProxy.start({
    upstream: () => port,
    fault,
    lateMs: limitMs + LATE_MS,
    endStreamsMs: scenario.endStreamsMs,
    holdStreamMs: scenario.holdStreamMs,
    onFault: async (name) => {
      if (name === 'abort') child?.kill('SIGINT');
      else
        port = await bench.restart(scenario.server).catch((error) => {
          notStarted = error;
          return port;
        });
    },
  });
  try {
    const steps = filled(scenario.steps, names);
    const order = {
      server: proxy.url,
      token: scenario.token === 'given' ? bench.token : { file: tokenFile },
      timing: {
        ...(isImpatient ? { attemptMs: limitMs, silenceMs: limitMs } : PATIENT),
        ...(scenario.pauses === 'short' && BACKOFF),
        waitMs: isImpatient ? Math.min(IMPATIENT_WAIT_MS, scenario.waitMs) : scenario.waitMs,
      },
      deadlineMs: scenario.isLong ? LONG_DEADLINE_MS : DEADLINE_MS,
      steps: steps.map(({ expect, ...step }) => ({ ...step, fails: expect?.error !== undefined })),
    };
    child = spawn(client.command[0] as string, client.command.slice(1), { env: client.env(folder), cwd: folder });
    const said = await saidBy(child, order, scenario.isLong ? LONG_RUN_MS : RUN_MS);
    if (notStarted) throw notStarted;
    checkEnd(said, [names.token, names.expiring]);
    checkSteps(said, steps, proxy.wasMade ? fault : undefined);
    const wasCutShort = proxy.wasMade && fault !== undefined && CUT_SHORT.includes(fault.name);
    if (!wasCutShort) {
      checkRuns(
        bench.runs().flatMap((mark) => (mark.startsWith(`${run}/`) ? [mark.slice(run.length + 1)] : [])),
        scenario,
      );
      assert.equal(await bench.sessionsOf(run), scenario.sessions, 'sessions that are there');
      await checkStates(bench, said);
    }
    checkFiles(folder, filled(scenario.files, names), wasCutShort);
    await bench.settled(() => proxy.underWay === 0);
    if (!fault) checkRequests(proxy.exchanges, filled(scenario.requests, names));
    if (clean && !isImpatient) {
      // The reads of session.refused are as many as the token's life has room for.
      const readsByTime = scenario.steps.some((step) => step.do === 'session.refused');
      const count = (exchanges: readonly Exchange[]) =>
        answeredAtOnce(exchanges).filter(({ method }) => method !== 'GET' || !readsByTime).length;
      const most = count(clean) + MORE_REQUESTS;
      assert.ok(count(proxy.exchanges) <= most, `more than ${most} requests`);
    }
    return { exchanges: proxy.exchanges, wasMade: proxy.wasMade };
  } finally {
    child?.kill('SIGKILL');
    proxy.close();
    await bench.clear(run);
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Requests other than waits, whose number depends on the time that the agent takes. */
const answeredAtOnce = (exchanges: readonly Exchange[]) => exchanges.filter(({ path }) => !path.includes('wait='));

async function saidBy(child: ChildProcess, order: object, limitMs: number): Promise<Said> {
  const said: Said = { steps: [], left: undefined, text: '', exit: null };
  const { stdin, stdout, stderr } = child;
  assert.ok(stdin && stdout && stderr);
  let rest = '';
  let timer = setTimeout(() => child.kill('SIGKILL'), limitMs);
  stderr.setEncoding('utf8').on('data', (piece: string) => {
    said.text += `stderr: ${piece}`;
  });
  stdout.setEncoding('utf8').on('data', (piece: string) => {
    said.text += piece;
    const lines = (rest + piece).split('\n');
    rest = lines.pop() as string;
    for (const line of lines) {
      const { end, ...step } = JSON.parse(line);
      if (!end) {
        said.steps.push(step);
        continue;
      }
      said.left = end.left;
      clearTimeout(timer);
      timer = setTimeout(() => child.kill('SIGKILL'), EXIT_MS);
    }
  });
  stdin.on('error', () => {});
  stdin.end(JSON.stringify(order));
  await new Promise((resolve) => child.once('close', resolve));
  clearTimeout(timer);
  said.exit = child.exitCode ?? child.signalCode;
  return said;
}

/** The process has ended by itself, has left nothing behind, and has told nobody its token. */
function checkEnd({ left, text, exit }: Said, tokens: readonly string[]): void {
  assert.deepEqual(
    left,
    [],
    `the client has not come to its end, or has left something behind:\n${text.slice(-3_000)}`,
  );
  assert.equal(exit, 0, `the process has not ended by itself:\n${text.slice(-3_000)}`);
  assert.doesNotMatch(text, /^stderr: /m);
  assert.ok(!tokens.some((token) => text.includes(token)), 'a text has the token');
}

/** Each input has run once. */
function checkRuns(marks: readonly string[], { runs }: Scenario): void {
  if (Array.isArray(runs)) {
    const surely = runs.filter((mark) => !mark.endsWith('?'));
    const possibly = runs.map((mark) => mark.replace('?', ''));
    const expected = possibly.filter((mark) => surely.includes(mark) || marks.includes(mark));
    assert.deepEqual(marks, expected, 'inputs that have run');
  } else {
    assert.equal(new Set(marks).size, marks.length, 'an input has run again');
    assert.equal(marks.filter((mark) => mark.startsWith(runs.mark)).length, runs.count, 'inputs that have run');
  }
}

function checkRequests(exchanges: readonly Exchange[], expected: Scenario['requests']): void {
  for (const { path, status, least, most = Number.POSITIVE_INFINITY } of expected) {
    const found = exchanges.filter(
      (exchange) => exchange.path.split('?')[0]?.endsWith(path) && [undefined, exchange.status].includes(status),
    );
    const what = `requests to …${path}${status === undefined ? '' : ` with answer ${status}`}`;
    assert.ok(found.length >= least && found.length <= most, `${found.length} ${what}, not ${least} to ${most}`);
  }
}

function checkSteps({ steps, text }: Said, given: readonly Step[], fault: Fault | undefined): void {
  const last = steps.at(-1);
  if (fault?.name === 'abort' || fault?.name === 'abort-body') {
    assert.equal(last?.aborted, true, `the step was not given up:\n${text.slice(-3_000)}`);
    steps = steps.slice(0, -1);
  } else {
    assert.equal(steps.length, given.length, `not all steps were done:\n${text.slice(-3_000)}`);
  }
  for (const { step, value, error } of steps) {
    const { do: what, expect = {} } = given[step] as Step;
    const where = `step ${step}, ${what}`;
    if (expect.error) {
      assert.ok(error?.isOwn, `${where} has not failed as expected: ${JSON.stringify(value ?? error)?.slice(0, 500)}`);
      const { says = '', ...expected } = expect.error;
      const actual = { class: error.class, ...(expected.code && { code: error.code }) };
      assert.deepEqual(actual, expected, where);
      assert.ok(error.message.includes(says), `${where}: the error does not say "${says}": ${error.message}`);
      continue;
    }
    assert.equal(error, undefined, `${where}: ${error?.class}: ${error?.message}`);
    if (expect.value !== undefined) assert.deepEqual(partOf(value, expect.value), expect.value, where);
    if (expect.listed !== undefined) assert.deepEqual(value, listedNames(expect.listed), where);
    if (what.endsWith('.follow')) checkFollowed(value as Followed[], expect, where);
  }
}

/** Returns the members of an object that are looked at; everything of another value. */
function partOf(value: unknown, looked: unknown): unknown {
  if (typeof looked !== 'object' || looked === null || Array.isArray(looked)) return value;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.keys(looked).map((name) => [name, (value as Record<string, unknown>)[name]]));
}

/** The end of a turn that was told is the end that the turn has. */
async function checkStates({ api }: Bench, { steps }: Said): Promise<void> {
  for (const { value } of steps) {
    const events = Array.isArray(value) ? (value as Partial<Followed>[]) : [];
    const told = new Map(
      events.flatMap(({ type, data }) => (type === 'turn' ? [[data?.turn as string, data?.phase]] : [])),
    );
    for (const [name, phase] of told) {
      const turn = await api.cluster.client.get(turns, { namespace: 'default', name }).catch(() => undefined);
      if (turn && isTerminal(phase as TurnPhase)) assert.equal(turn.status?.phase, phase, `turn ${name}`);
    }
  }
}

/** The files have their names if they are whole, and there is none beside them. */
function checkFiles(folder: string, expected: Record<string, string>, mayLack: boolean): void {
  const there = readdirSync(folder).filter((name) => name !== 'token');
  const others = there.filter((name) => expected[name] === undefined);
  assert.deepEqual(others, [], 'files that nobody asked for');
  for (const [name, digest] of Object.entries(expected)) {
    if (mayLack && !there.includes(name)) continue;
    assert.ok(there.includes(name), `there is no file ${name}`);
    assert.equal(
      createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex'),
      digest,
      name,
    );
  }
}
