import { anySignal } from '../../core/abort.ts';
import type { StreamEvent } from '../../core/follow/events.ts';
import { parseEventLine } from '../../core/pod-log/agent-events.ts';
import { type StoredSession, type StoredTurn, sessions } from '../../core/resources/kinds.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import type { Cli } from '../cli.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { askInPlace } from './ask.ts';
import { eventKey, keyOfLine, restOfLog } from './rest.ts';
import { RunningTime } from './running-time.ts';
import { inWords } from './words.ts';

/** Printed lines that are remembered, to find the rest of the log. */
const REMEMBERED = 1_000;

interface NarrationOptions {
  turn: StoredTurn;
  session: StoredSession;
  cluster: Cluster;
  cli: Cli;
  /** False if the lines of another turn can come just before those of this one. */
  isFirst: boolean;
}

/** Pause after another turn's end from which on printed lines can only be of the next; milliseconds. */
const APART_MS = 5_000;

/**
 * Begins to show what happens in a turn that was just created. Resolves with undefined where the session cannot be read:
 * the command then waits for the turn alone.
 */
export async function narrate(turn: StoredTurn, cluster: Cluster, cli: Cli): Promise<Narration | undefined> {
  const ref = { namespace: cluster.namespace, name: turn.spec.session };
  const session = await cluster.api.get(sessions, ref, { signal: cli.interrupted }).catch(() => undefined);
  if (!session) return undefined;
  const { lastTurn, lastActiveAt } = session.status ?? {};
  const isFirst = !lastTurn || !lastActiveAt || cli.clock.now() - Date.parse(lastActiveAt) > APART_MS;
  return new Narration({ turn, session, cluster, cli, isFirst });
}

/** Shows on stderr what happens in a turn while it happens: printed lines, events and questions. */
class Narration {
  readonly #options: NarrationOptions;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  readonly #time: RunningTime;
  readonly #printed: string[] = [];
  #isRunning = false;
  /** Lines from before it was known that the turn runs. */
  #early: Extract<StreamEvent, { type: 'log' }>[] = [];
  #deciding: { requestId: string; over: AbortController } | undefined;

  constructor(options: NarrationOptions) {
    this.#options = options;
    this.#time = new RunningTime(options.turn.metadata.name, options.cli);
    this.#running = this.#run();
  }

  /** Shows the rest of the ended turn's log, and ends. Never rejects: the turn's end is shown elsewhere. */
  async finish(ended: StoredTurn | undefined): Promise<void> {
    const { cli, cluster, turn } = this.#options;
    this.#stop.abort(new Error('the turn has ended'));
    this.#decided();
    await this.#running;
    if (!ended?.status?.log || cli.interrupted.aborted) return;
    try {
      const log = await cluster.log(ended, cli.interrupted);
      const lines = log.split('\n');
      if (lines.at(-1) === '') lines.pop();
      const { session } = turn.spec;
      for (const line of restOfLog(this.#printed, lines)) {
        const event = parseEventLine(line);
        const last: StreamEvent = event
          ? { type: 'agent', data: { session, turn: event.turn, at: event.at, event: event.event } }
          : { type: 'log', data: { session, text: line } };
        this.#say(last);
      }
    } catch {
      // The end of the turn names the command that prints its log.
    }
  }

  async #run(): Promise<void> {
    const { session, cluster, cli } = this.#options;
    const signal = anySignal(cli.interrupted, this.#stop.signal);
    try {
      for await (const { id, event } of cluster.sessionEvents(session, { logs: true, signal }, cli))
        this.#show(event, id);
    } catch (error) {
      if (!signal.aborted) cli.say(`what happens in the turn cannot be followed: ${(error as Error).message}`);
    } finally {
      this.#time.hide();
    }
  }

  #show(event: StreamEvent, id: string): void {
    const isOurs = 'turn' in event.data && event.data.turn === this.#options.turn.metadata.name;
    switch (event.type) {
      case 'turn':
        this.#turn(event);
        break;
      case 'log':
        if (this.#isRunning) this.#print(event, keyOfLine(event.data.text));
        else this.#early.push(event);
        break;
      case 'agent':
        if (isOurs) this.#print(event, eventKey(Number(id.split('.')[3])));
        break;
      case 'dropped':
        this.#say(event);
        break;
      case 'approval':
        if (isOurs) this.#ask(event.data);
        break;
      default:
    }
  }

  #turn(event: Extract<StreamEvent, { type: 'turn' }>): void {
    const { phase, uid, turn } = event.data;
    if (uid !== this.#options.turn.metadata.uid) {
      if (phase === 'Running' || isTerminal(phase)) this.#early = [];
      return;
    }
    if (phase !== 'Running') {
      this.#time.hide();
      return;
    }
    this.#time.show();
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#options.cli.say(`turn ${turn} Running`);
    const early = this.#early.splice(0);
    if (this.#options.isFirst) for (const line of early) this.#print(line, keyOfLine(line.data.text));
  }

  #ask(data: Extract<StreamEvent, { type: 'approval' }>['data']): void {
    if (data.decided) {
      if (this.#deciding?.requestId === data.requestId) this.#decided();
      this.#say({ type: 'approval', data });
      return;
    }
    if (this.#deciding?.requestId === data.requestId) return;
    this.#decided();
    const { cluster, cli } = this.#options;
    const over = new AbortController();
    this.#deciding = { requestId: data.requestId, over };
    void askInPlace(data, cluster, cli, anySignal(cli.interrupted, over.signal));
  }

  #decided(): void {
    this.#deciding?.over.abort(new Error('it has been decided'));
    this.#deciding = undefined;
  }

  #print(event: StreamEvent, key: string): void {
    this.#printed.push(key);
    if (this.#printed.length > 2 * REMEMBERED) this.#printed.splice(0, REMEMBERED);
    this.#say(event);
  }

  #say(event: StreamEvent): void {
    const { cli } = this.#options;
    cli.say(inWords(event, cli.messages?.hasColour));
  }
}
