import type { Bind, CancelTurn, Pong, RefusalCode, Restore, StartTurn } from '../core/frames/messages.ts';
import { openState } from '../core/frames/seal.ts';
import { errorCode } from './errors.ts';
import { EMPTY_DIGEST } from './state/archive.ts';
import { type KnownState, STOP_GRACE_MS, sendState, TurnRun, type TurnSurroundings } from './turn.ts';

/** Why a control line is not carried out. */
export interface Refusal {
  code: RefusalCode;
  message: string;
}

/** For what turns out only after the line was accepted. */
export type Refuse = (refusal: Refusal) => void;

/**
 * The session that the runner is bound to: takes its state and its turns, one at a time. Every request may come again,
 * from the same controller or from its successor. What is not carried
 * out returns, or later gives, a Refusal.
 */
export class BoundSession {
  readonly bind: Bind;
  readonly #surroundings: TurnSurroundings;
  readonly #known: KnownState = { digest: EMPTY_DIGEST };
  /** The digest of the state that is restored, or being restored. */
  #restoring: string | undefined;
  #isRestored: boolean;
  /** Told to the agent until one has started. */
  #restored: Bind['restored'];
  #current: TurnRun | undefined;
  #last: TurnRun | undefined;
  /** The highest attempt that ended, by turn. */
  readonly #done = new Map<string, number>();
  #acknowledged = 0;
  #suspended = false;
  #stopping = false;
  #lastActivity: number;
  /** Packing, unpacking and running never overlap. */
  #work: Promise<void> = Promise.resolve();

  constructor(bind: Bind, surroundings: TurnSurroundings) {
    this.bind = bind;
    this.#surroundings = surroundings;
    this.#isRestored = bind.restores === undefined;
    this.#restored = bind.restored;
    this.#lastActivity = surroundings.clock.now();
  }

  restore({ digest, keyId }: Restore, sealed: Buffer, refuse: Refuse): Refusal | undefined {
    const expected = this.bind.restores?.digest;
    if (this.#restoring === digest) return undefined;
    if (expected === undefined) return refusal('AlreadyDone', 'the session was bound without a state to restore');
    if (this.#isRestored) return refusal('AlreadyDone', `the state ${this.#known.digest} is restored already`);
    if (digest !== expected) return refusal('RestoreFailed', `the session was bound to the state ${expected}`);
    this.#restoring = digest;
    this.#queue(async () => {
      try {
        const { session, key } = this.#surroundings.stateKey;
        const packed = openState(key, sealed, { session, keyId });
        if (!packed) throw new Error(`it is not sealed with this session's key ${keyId}`);
        await this.#surroundings.state.unpack(packed, digest);
        this.#known.digest = digest;
        this.#isRestored = true;
      } catch (error) {
        this.#restoring = undefined;
        refuse(refusal('RestoreFailed', `the state was not restored: ${errorCode(error)}`));
      }
    });
    return undefined;
  }

  turn(message: StartTurn, refuse: Refuse): Refusal | undefined {
    const { turn, attempt } = message;
    if (this.#current) {
      if (!isAttempt(this.#current, turn, attempt)) {
        return refusal('Busy', `turn ${this.#current.message.turn} runs`);
      }
      this.#current.sayStarted();
      return undefined;
    }
    const { frames } = this.#last ?? {};
    if (frames && frames.last > this.#acknowledged && isAttempt(this.#last, turn, attempt)) {
      this.#surroundings.sender.resend(frames.first);
      return undefined;
    }
    if ((this.#done.get(turn) ?? 0) >= attempt) return refusal('AlreadyDone', `attempt ${attempt} has ended before`);
    if (this.#stopping) return refusal('Suspended', 'the runner is about to end');
    if (this.#suspended) return refusal('Suspended', 'the session is suspended');
    const run = new TurnRun(message, this.#surroundings, this.#known);
    this.#current = run;
    this.#queue(() => this.#run(run, refuse));
    return undefined;
  }

  cancel({ turn, outcome }: CancelTurn): Refusal | undefined {
    if (this.#current?.message.turn !== turn) {
      return this.#done.has(turn)
        ? refusal('AlreadyDone', 'the turn has ended')
        : refusal('UnknownTurn', 'the turn was never started here');
    }
    const error =
      outcome === 'TimedOut'
        ? { code: 'TurnTimedOut', message: 'the turn ran longer than its time-out and was stopped' }
        : { code: 'Cancelled', message: 'the turn was cancelled' };
    this.#current.stop({ outcome, error, graceMs: STOP_GRACE_MS });
    return undefined;
  }

  ack(through: number): void {
    this.#acknowledged = Math.max(this.#acknowledged, through);
    this.#surroundings.sender.ack(through);
  }

  snapshot(refuse: Refuse): Refusal | undefined {
    if (this.#current) return refusal('Busy', `turn ${this.#current.message.turn} runs; its end brings the state`);
    this.#queue(async () => {
      if (!this.#isRestored) return refuse(refusal('NotRestored', 'there is no state before it is restored'));
      try {
        await sendState(this.#surroundings, this.#known, undefined);
      } catch (error) {
        refuse(refusal('SnapshotFailed', (error as Error).message));
      }
    });
    return undefined;
  }

  /** While suspended no turn is begun. */
  suspend(suspended: boolean): void {
    this.#suspended = suspended;
  }

  ping(n: number): Pong {
    const run = this.#current ?? (this.#last && !this.#isAcknowledged(this.#last) ? this.#last : undefined);
    const lastActivity = Math.max(this.#lastActivity, run?.lastActivity ?? 0);
    return {
      n,
      incarnation: this.bind.incarnation,
      ...(run && {
        turn: {
          uid: run.message.turn,
          attempt: run.message.attempt,
          phase: run.phase,
          ...(run.started && { startedAt: run.started.at }),
        },
      }),
      lastActivityAt: new Date(lastActivity).toISOString(),
      suspended: this.#suspended,
    };
  }

  /** Ends the running turn and every process of the session. Resolves when the turn's frames are given to the sender. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping = true;
    const message = 'the pod was told to stop while the turn ran; the agent was stopped';
    this.#current?.stop({ outcome: 'Failed', error: { code: 'PodLost', message }, graceMs });
    await Promise.all([this.#work, this.#surroundings.driver.stop(graceMs)]);
    // A process that was being started at that moment.
    await this.#surroundings.driver.stop(0);
  }

  async #run(run: TurnRun, refuse: Refuse): Promise<void> {
    if (!this.#isRestored) {
      this.#current = undefined;
      refuse(refusal('NotRestored', `the state ${this.bind.restores?.digest} has to be restored first`));
      return;
    }
    try {
      await run.run(this.#restored);
    } finally {
      if (run.started) this.#restored = undefined;
      this.#lastActivity = run.lastActivity;
      this.#done.set(run.message.turn, run.message.attempt);
      this.#last = run;
      this.#current = undefined;
    }
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
