/** Interpreter of scenarios for the TypeScript client: an order on stdin, a line of JSON on stdout for each step, and one at the end. */
import { writeFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { setImmediate, setTimeout } from 'node:timers/promises';
import {
  type Approval,
  type Artifact,
  Berth,
  BerthError,
  parseExact,
  type Session,
  type SessionStreamEvent,
  stringifyExact,
  type Turn,
} from '../../../clients/typescript/src/index.ts';

// biome-ignore lint/suspicious/noExplicitAny: the runner has checked the scenario
type Arguments = any;

interface Order {
  server: string;
  /** A token, or the path of its file. */
  token: string | { file: string };
  timing: object;
  deadlineMs: number;
  steps: { do: string; on?: string; with?: Arguments; save?: string; fails?: boolean }[];
}

/** Time that connections have to close, milliseconds. */
const LEAVE_MS = 2_000;
/** Pause between reads until one is refused, milliseconds. */
const ASK_AGAIN_MS = 200;
const ENDED = ['Succeeded', 'Failed', 'Cancelled', 'TimedOut'];

/** Objects of earlier steps by the names under which they were saved. */
const saved = new Map<string, unknown>();
const abort = new AbortController();
const { signal } = abort;
process.on('SIGINT', () => abort.abort(new Error('told to give up')));

// Every digit of the order counts.
const order = parseExact(await text(process.stdin)) as Order;
const berth = new Berth({
  server: order.server,
  token: order.token,
  timing: order.timing,
  deadlineMs: order.deadlineMs,
});

/** What each kind of step does; returns what is printed, and what is saved. */
const STEPS: Record<string, (on: never, given: Arguments) => Promise<[value: unknown, object?: unknown]>> = {
  write: async (_, { file, text }) => [await writeFile(file, text)],
  run: async (_, { input, key, labels }) => {
    const run = await berth.run({ input }, { labels, idempotencyKey: key, signal });
    return [shownResult(run), run];
  },
  runs: async (_, { count, input, labels, class: class_ }) => {
    const one = (n: number) =>
      berth.run({ class: class_, input: { ...input, mark: `${input.mark}-${n}` } }, { labels, signal });
    const phases = new Map<string, number>();
    const runs = await Promise.all(Array.from({ length: count }, (_, n) => one(n)));
    for (const { phase } of runs) phases.set(phase, (phases.get(phase) ?? 0) + 1);
    return [Object.fromEntries(phases)];
  },
  session: async (_, { name }) => [null, berth.session(name)],
  'session.create': async (_, { name, key, labels, class: class_ }) => {
    const session = await berth.sessions.create({ class: class_ }, { name, labels, idempotencyKey: key, signal });
    return [{ name: session.name }, session];
  },
  'session.get': async (session: Session) => {
    const { metadata, spec, status } = await session.get({ signal });
    return [{ name: metadata.name, suspend: spec.suspend, phase: status?.phase }];
  },
  'session.refused': async (session: Session) => {
    for (;;) {
      await session.get({ signal });
      await setTimeout(ASK_AGAIN_MS, undefined, { signal });
    }
  },
  'session.suspend': async (session: Session, given) => [void (await session.suspend({ ...given, signal }))],
  'session.resume': async (session: Session) => [void (await session.resume({ signal }))],
  'session.restart': async (session: Session) => [void (await session.restart({ signal }))],
  'session.touch': async (session: Session) => [void (await session.touch({ signal }))],
  'session.delete': async (session: Session) => [await session.delete({ signal })],
  'session.follow': async (session: Session, { logs, after, until, stopMs }) => {
    const place = typeof after === 'string' && saved.has(after) ? (saved.get(after) as string) : after;
    return followed(session.events({ logs, after: place, signal }), until, stopMs);
  },
  'session.approvals': async (session: Session) => {
    const approvals = await session.approvals({ signal });
    return [approvals.map(({ prompt, payload }) => ({ prompt, payload })), approvals[0]];
  },
  'sessions.list': async (_, { labelSelector }) => {
    const names: string[] = [];
    for await (const { name } of berth.sessions.list({ labelSelector, signal })) names.push(name);
    return [names];
  },
  'turn.create': async (session: Session, { key, input, timeout }) => {
    const turn = await session.turns.create({ input, timeout }, { idempotencyKey: key, signal });
    return [{ name: turn.name }, turn];
  },
  turn: async (session: Session, { name }) => [null, session.turn(name)],
  'turn.result': async (turn: Turn) => [shownResult(await turn.result({ signal }))],
  'turn.cancel': async (turn: Turn) => [void (await turn.cancel({ signal }))],
  'turn.log': async (turn: Turn) => [await turn.log({ signal })],
  'turn.follow': async (turn: Turn, { until }) => followed(turn.events({ signal }), until),
  'turn.artifacts': async (turn: Turn, { name }) => {
    const artifacts = await turn.artifacts({ signal });
    return [artifacts.map((artifact) => artifact.name), artifacts.find((artifact) => artifact.name === name)];
  },
  'artifact.save': async (artifact: Artifact, { to }) => [await artifact.save(to, { signal })],
  approve: async (approval: Approval, { note }) => [void (await approval.approve({ note, signal }))],
  deny: async (approval: Approval, { note }) => [void (await approval.deny({ note, signal }))],
};

const shownResult = ({ phase, output, text }: { phase: string; output: unknown; text: () => string }) => ({
  phase,
  output: shown(output),
  text: text(),
});

/** Replaces each number by its digits, as both languages write them. */
function shown(value: unknown): unknown {
  if (typeof value === 'number' || typeof value === 'bigint') return String(value).toLowerCase();
  if (Array.isArray(value)) return value.map(shown);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shown(member)]));
}

/** Follows until as many events of each kind have come as `until` says, or to the end of all events. Stops for `stopMs` at the first one of an agent. */
async function followed(
  events: AsyncIterable<SessionStreamEvent>,
  until: Record<string, number> = {},
  stopMs = 0,
): Promise<[unknown, unknown]> {
  const seen: unknown[] = [];
  const left = new Map(Object.entries(until));
  let last = '';
  for await (const event of events) {
    seen.push(event);
    last = event.id || last;
    if (event.type === 'agent') {
      await setTimeout(stopMs, undefined, { signal });
      stopMs = 0;
    }
    const kind = event.type === 'turn' && ENDED.includes(event.data.phase) ? 'end' : event.type;
    left.set(kind, (left.get(kind) ?? 0) - 1);
    if (Object.keys(until).length > 0 && Object.keys(until).every((name) => (left.get(name) ?? 0) <= 0)) break;
  }
  return [seen, last];
}

function print(line: object): void {
  process.stdout.write(`${stringifyExact(line)}\n`);
}

function shownError(error: unknown): object {
  const { name, message, code } = error as Error & { code?: string };
  return { class: name, code, message, isOwn: error instanceof BerthError };
}

for (const [number, { do: what, on, with: given = {}, save, fails = false }] of order.steps.entries()) {
  try {
    const step = STEPS[what];
    if (!step) throw new Error(`there is no step ${what}`);
    const [value = null, object] = await step((on === undefined ? undefined : saved.get(on)) as never, given);
    if (save !== undefined) saved.set(save, object);
    print({ step: number, value });
  } catch (error) {
    if (error === signal.reason) {
      print({ step: number, aborted: true });
      break;
    }
    print({ step: number, error: shownError(error) });
    if (!fails) break;
  }
}
// What still keeps this process alive, where the runtime can tell; it ends by itself. A connection that was given up is closed a little later.
const KEEP_ALIVE = ['Timeout', 'TCPSocketWrap'];
const active: () => string[] = process.getActiveResourcesInfo ?? (() => []);
const kept = () => active.call(process).filter((name) => KEEP_ALIVE.includes(name));
const end = performance.now() + LEAVE_MS;
while (kept().length > 0 && performance.now() < end) await setImmediate();
print({ end: { left: kept() } });
