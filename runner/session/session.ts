import type {
  AgentFiles,
  Bind,
  CancelTurn,
  ControlMessages,
  EnvironmentArchive,
  Pong,
  RefusalCode,
  Restore,
  ResumeTurn,
  StartTurn,
} from '../../core/frames/messages.ts';
import { openState } from '../../core/frames/seal.ts';
import type { Commands } from '../commands/commands.ts';
import { EMPTY_DIGEST } from '../state/archive.ts';
import { Packing } from '../state/packing.ts';
import { errorCode } from '../system/errors.ts';
import { type KnownState, sendState } from '../turn/frames.ts';
import { PastTurns } from '../turn/past-turns.ts';
import { STOP_GRACE_MS, segmentOf, TurnRun, type TurnSurroundings } from '../turn/turn.ts';
import { unstoppedLine } from '../turn/unstopped.ts';
import { ArrivingFiles } from './agent-files.ts';

/** Limit of the archives with the agent's files. */
const MAX_ARCHIVES = 64;

/** Reason why a control line is not carried out. */
export interface Refusal {
  code: RefusalCode;
  message: string;
}

/** NotReady: state, files or environment are not in their places yet. */
export type Access = 'Open' | 'NotReady' | 'Suspended' | 'Stopping';

/** Refuses a control line for a reason found after the line was accepted. */
export type Refuse = (refusal: Refusal) => void;

/** Part of the binding that a session needs. */
export interface SessionSurroundings extends TurnSurroundings {
  commands: Commands;
}

/**
 * The session that the runner is bound to: it takes its state and its turns, one at a time. Every request may be
 * repeated, by the same controller or by its successor. A request that is not carried out returns a Refusal, or reports
 * one later.
 */
export class BoundSession {
  readonly bind: Bind;
  readonly #surroundings: SessionSurroundings;
  readonly #known: KnownState = { digest: EMPTY_DIGEST };
  /** Digest of the state that is restored, or being restored. */
  #restoring: string | undefined;
  #isRestored: boolean;
  readonly #arriving = new ArrivingFiles();
  /** True once the agent's files are in their place, or being unpacked. */
  #hasAllFiles: boolean;
  #hasFiles: boolean;
  /** True once the environment has arrived, and then once it is unpacked. */
  #environmentArrived: boolean;
  #hasEnvironment: boolean;
  /**
   * Refusal of a state, files or an environment that could not be unpacked. It is final: the controller ends the turns of a
   * session that cannot start, and a repeated request must not start one after all.
   */
  #failure: Refusal | undefined;
  /** Facts about the restoration, for the first agent that starts. */
  #restored: Bind['restored'];
  #current: TurnRun | undefined;
  #last: TurnRun | undefined;
  readonly #past = new PastTurns();
  #acknowledged = 0;
  #suspended = false;
  #stopping = false;
  #lastActivity: number;
  readonly #activities: { readonly idleMs: number | undefined }[] = [];
  /** True while clients cannot enter, because another process has the name of the runner's socket. */
  closedToClients = false;
  readonly #packing = new Packing();
  /** Chain of packing, unpacking and running, which never overlap. */
  #work: Promise<void> = Promise.resolve();

  constructor(bind: Bind, surroundings: SessionSurroundings) {
    this.bind = bind;
    this.#surroundings = { ...surroundings, state: this.#packing.of(surroundings.state) };
    this.#isRestored = bind.restores === undefined;
    this.#hasAllFiles = bind.files === undefined;
    this.#hasFiles = bind.files === undefined;
    this.#environmentArrived = bind.environment === undefined;
    this.#hasEnvironment = bind.environment === undefined;
    this.#restored = bind.restored;
    this.#lastActivity = surroundings.clock.monotonic();
  }

  restore({ digest, keyId }: Restore, sealed: Buffer, refuse: Refuse): Refusal | undefined {
    const expected = this.bind.restores?.digest;
    if (this.#restoring === digest) return undefined;
    if (expected === undefined) return refusal('AlreadyDone', 'the session was bound without a state to restore');
    if (this.#isRestored) return refusal('AlreadyDone', `the state ${expected} is restored already`);
    if (digest !== expected) return refusal('RestoreFailed', `the session was bound to the state ${expected}`);
    if (this.#failure) return this.#failure;
    this.#restoring = digest;
    this.#queue(async () => {
      try {
        const { session, key } = this.#surroundings.stateKey;
        const sealedWith = this.bind.restores?.sealedWith;
        const opens = sealedWith ? Buffer.from(sealedWith.key, 'base64') : key;
        const packed = openState(opens, sealed, { session, keyId });
        if (!packed) throw new Error(`it is not sealed with this session's key ${keyId}`);
        await this.#surroundings.state.unpack(packed, digest);
        // A state that is sealed with another key is sent again even if nothing changes, so that the other key can go.
        if (!sealedWith) this.#known.digest = digest;
        this.#isRestored = true;
      } catch (error) {
        this.#restoring = undefined;
        this.#fail(refusal('RestoreFailed', `the state was not restored: ${errorCode(error)}`), refuse);
      }
    });
    return undefined;
  }

  /** Takes one of the archives with the agent's files; the last one that was missing has them unpacked. */
  files(message: AgentFiles, archive: Buffer, refuse: Refuse): Refusal | undefined {
    if (this.bind.files === undefined) return refusal('AlreadyDone', 'the session was bound without files');
    if (this.#hasAllFiles) return undefined;
    if (this.#failure) return this.#failure;
    const { index, count } = message;
    if (!(Number.isInteger(index) && Number.isInteger(count) && 0 <= index && index < count && count <= MAX_ARCHIVES)) {
      return refusal('Malformed', `archive ${index} of ${count}`);
    }
    const archives = this.#arriving.take(message, archive);
    if (!archives) return undefined;
    this.#hasAllFiles = true;
    this.#queue(async () => {
      try {
        await this.#surroundings.unpackFiles(archives);
        this.#hasFiles = true;
      } catch (error) {
        this.#hasAllFiles = false;
        this.#fail(refusal('FilesFailed', (error as Error).message), refuse);
      }
    });
    return undefined;
  }

  /** Takes the archive of the environment, and unpacks it. */
  environment({ digest }: EnvironmentArchive, sealed: Buffer, refuse: Refuse): Refusal | undefined {
    const expected = this.bind.environment;
    if (!expected) return refusal('AlreadyDone', 'the session was bound without an environment');
    if (this.#environmentArrived) return undefined;
    if (this.#failure) return this.#failure;
    if (digest !== expected.digest) {
      return refusal('EnvironmentFailed', `the session was bound to the environment ${expected.digest}`);
    }
    this.#environmentArrived = true;
    this.#queue(async () => {
      try {
        const { session, keyId, key } = expected;
        const packed = openState(Buffer.from(key, 'base64'), sealed, { session, keyId });
        if (!packed)
          throw new Error(`the environment is not sealed with the key ${keyId} of the session that built it`);
        await this.#surroundings.unpackEnvironment({ packed, digest });
        this.#hasEnvironment = true;
      } catch (error) {
        this.#environmentArrived = false;
        const mismatches = (error as { code?: string }).code === 'EnvironmentMismatch';
        this.#fail(refusal(mismatches ? 'EnvironmentMismatch' : 'EnvironmentFailed', (error as Error).message), refuse);
      }
    });
    return undefined;
  }

  /**
   * Starts a turn or takes its decision. A decision goes to the process that waits for it; otherwise the turn continues
   * in a new process.
   */
  turn(message: StartTurn | ResumeTurn, refuse: Refuse): Refusal | undefined {
    const { turn, attempt } = message;
    const segment = segmentOf(message);
    const current = this.#current;
    if (current && !(current.parked && 'approval' in message)) {
      if (!isAttempt(current, turn, attempt)) return refusal('Busy', `turn ${current.message.turn} runs`);
      if ('approval' in message && segmentOf(current.message) !== segment && !current.decide(message.approval)) {
        return refusal('UnknownRequest', `the turn does not wait for ${message.approval.requestId}`);
      }
      current.sayStarted();
      return undefined;
    }
    const last = this.#last;
    if (last?.frames && last.frames.last > this.#acknowledged && segmentOf(last.message) === segment) {
      this.#surroundings.sender.resend(last.frames.first);
      return undefined;
    }
    const problem = this.#past.problem(message);
    if (problem) return refusal('AlreadyDone', problem);
    // No turn starts from a state that is not stored, because it may never be.
    if (last?.frames && !this.#isAcknowledged(last))
      return refusal('Busy', `the end of turn ${last.message.turn} is not stored`);
    if (this.#stopping) return refusal('Busy', 'the runner is about to end');
    if (this.#suspended) return refusal('Suspended', 'the session is suspended');
    const run = new TurnRun(message, this.#surroundings, this.#known);
    this.#current = run;
    this.#queue(() => this.#run(run, refuse));
    return undefined;
  }

  cancel({ turn, outcome, reason }: CancelTurn): Refusal | undefined {
    // A parked turn has no process any more, or is about to have none; its question was committed.
    if (this.#current?.message.turn !== turn || this.#current.parked) {
      return this.#past.hasEnded(turn)
        ? refusal('AlreadyDone', 'the turn has ended')
        : refusal('UnknownTurn', 'the turn does not run here');
    }
    const error =
      reason === 'LifetimeExceeded'
        ? { code: reason, message: 'timeouts.lifetime of the session is over; the turn was stopped' }
        : outcome === 'TimedOut'
          ? { code: 'TurnTimedOut', message: 'the turn ran longer than its timeout and was stopped' }
          : { code: 'Cancelled', message: 'the turn was cancelled' };
    this.#current.stop({ outcome, error, graceMs: STOP_GRACE_MS });
    return undefined;
  }

  ack(through: number): void {
    this.#acknowledged = Math.max(this.#acknowledged, through);
    this.#surroundings.sender.ack(through);
  }

  snapshot({ maxStateBytes }: ControlMessages['snapshot'], refuse: Refuse): Refusal | undefined {
    if (this.#current && !this.#current.parked) {
      return refusal('Busy', `turn ${this.#current.message.turn} runs; its end brings the state`);
    }
    this.#queue(async () => {
      if (!this.#isRestored) return refuse(refusal('NotRestored', 'there is no state before it is restored'));
      const { meter, secrets, podText } = this.#surroundings;
      try {
        await meter.whileHeld((unstopped) => {
          const line = unstoppedLine(unstopped, secrets);
          if (line) podText.lines(line);
          return sendState(this.#surroundings, this.#known, undefined, maxStateBytes);
        });
      } catch (error) {
        refuse(refusal('SnapshotFailed', (error as Error).message));
      }
    });
    return undefined;
  }

  /**
   * Sets the suspension, during which no turn is started. A process that waits for a decision is stopped; a new one
   * gets the decision.
   */
  suspend(suspended: boolean): void {
    this.#suspended = suspended;
    const { commands, meter } = this.#surroundings;
    commands.suspend(suspended);
    meter.standCommands(suspended);
    if (suspended && this.#current?.waits) this.#current.park(STOP_GRACE_MS);
  }

  /** Reports whether somebody may work inside the session now, beside its turns. */
  get access(): Access {
    if (this.#stopping) return 'Stopping';
    if (this.#suspended) return 'Suspended';
    return this.#isRestored && this.#hasFiles && this.#hasEnvironment ? 'Open' : 'NotReady';
  }

  /**
   * Takes a step in the session's folders while no state is packed. Resolves with false, without the step, where it is packed for longer
   * than `ms`.
   */
  outsidePacking(step: () => void, ms: number): Promise<boolean> {
    return this.#packing.outside(step, this.#surroundings.clock, ms);
  }

  /** Commands that clients run beside the turns. */
  get commands(): Commands {
    return this.#surroundings.commands;
  }

  /** Adds what keeps the session from being idle, as its commands do, and from nothing else. */
  keptBusyBy(activity: { readonly idleMs: number | undefined }): void {
    this.#activities.push(activity);
  }

  /** The running turn, which answers requests of the session's processes. */
  get running(): TurnRun | undefined {
    const run = this.#current;
    return run?.phase === 'Running' && !run.parked ? run : undefined;
  }

  /** Records activity in the session. */
  touch(): void {
    this.#lastActivity = this.#surroundings.clock.monotonic();
    if (this.#current) this.#current.lastActivity = this.#lastActivity;
  }

  ping(n: number): Pong {
    const unread = this.#last?.frames && !this.#isAcknowledged(this.#last) ? this.#last : undefined;
    // A turn whose frames are acknowledged has ended for the controller, even if its processes are still being stopped.
    const current = this.#current;
    const run = current && !current.parked && !this.#isAcknowledged(current) ? current : unread;
    const { clock } = this.#surroundings;
    const idleMs = Math.round(clock.monotonic() - Math.max(this.#lastActivity, run?.lastActivity ?? 0));
    const idle = [this.commands, ...this.#activities].flatMap((each) => each.idleMs ?? []);
    return {
      n,
      incarnation: this.bind.incarnation,
      ...(run && {
        turn: {
          uid: run.message.turn,
          attempt: run.message.attempt,
          phase: run.phase,
          ...(run.lastDecided && { told: run.lastDecided }),
          ...(run.started && {
            startedAt: run.started.at,
            runningMs: Math.round(clock.monotonic() - run.startedAt),
          }),
          ...(run.started && run === this.#current && { usage: run.usage }),
        },
      }),
      idleMs,
      ...(idle.length > 0 && { commandIdleMs: Math.min(...idle) }),
      ...(this.closedToClients && { closedToClients: true as const }),
      suspended: this.#suspended,
    };
  }

  /**
   * Ends the running turn and every process of the session. Resolves when the turn's frames are given to the sender.
   */
  async stop(graceMs: number): Promise<void> {
    this.#stopping = true;
    const message = 'the pod was told to stop while the turn ran; the agent was stopped';
    // A turn that waits for a decision is not lost: it continues in another incarnation.
    if (this.#current?.waits) this.#current.park(graceMs);
    else this.#current?.stop({ outcome: 'Failed', error: { code: 'PodLost', message }, graceMs });
    const { driver, commands } = this.#surroundings;
    await Promise.all([this.#work, driver.stop(graceMs), commands.stop(graceMs)]);
    // A process may have been in the middle of its start.
    await driver.stop(0);
  }

  async #run(run: TurnRun, refuse: Refuse): Promise<void> {
    if (!this.#isRestored) {
      if (this.#current === run) this.#current = undefined;
      refuse(refusal('NotRestored', `the state ${this.bind.restores?.digest} has to be restored first`));
      return;
    }
    if (!this.#hasFiles) {
      if (this.#current === run) this.#current = undefined;
      refuse(refusal('NotRestored', 'the files of agent.files have to arrive first'));
      return;
    }
    if (!this.#hasEnvironment) {
      if (this.#current === run) this.#current = undefined;
      refuse(refusal('NotRestored', 'the environment has to arrive first'));
      return;
    }
    try {
      const { turn, attempt } = run.message;
      const before = isAttempt(this.#last, turn, attempt) ? this.#last?.written : undefined;
      // A process that gets a decision hears nothing of the restoration; the next turn does.
      await run.run('approval' in run.message ? undefined : this.#restored, before);
    } finally {
      if (run.started && !('approval' in run.message)) this.#restored = undefined;
      this.#lastActivity = run.lastActivity;
      if (run.asked) this.#past.asked(run.message);
      else if (!run.parked) this.#past.ended(run.message);
      this.#last = run;
      if (this.#current === run) this.#current = undefined;
    }
  }

  #fail(failure: Refusal, refuse: Refuse): void {
    this.#failure ??= failure;
    refuse(failure);
  }

  #isAcknowledged(run: TurnRun): boolean {
    return run.frames !== undefined && run.frames.last <= this.#acknowledged;
  }

  #queue(work: () => Promise<void>): void {
    this.#work = this.#work.then(work);
  }
}

function refusal(code: RefusalCode, message: string): Refusal {
  return { code, message };
}

function isAttempt(run: TurnRun | undefined, turn: string, attempt: number): boolean {
  return run?.message.turn === turn && run.message.attempt === attempt;
}
