import { packContents } from '../../core/artifacts/packed.ts';
import { packLog } from '../../core/frames/log-text.ts';
import type { Log, Question, Result, ResumeTurn, Started, StartTurn } from '../../core/frames/messages.ts';
import { sealState } from '../../core/frames/seal.ts';
import type { FrameSender } from '../../core/frames/sender.ts';
import { TurnFailure } from '../../core/result/failure.ts';
import type { Clock, Random } from '../../core/runtime.ts';
import type { Hidden } from '../../core/text/hidden.ts';
import { redact } from '../../core/text/redact.ts';
import type { OutputDirectory } from '../artifacts/artifacts.ts';
import type { StateDirectory } from '../state/archive.ts';
import { errorCode } from '../system/errors.ts';
import type { WrittenText } from '../text/log.ts';
import type { PodText } from '../text/pod-text.ts';

/** Part of the binding that frames need. */
export interface FrameSurroundings {
  sender: FrameSender;
  state: StateDirectory;
  output?: OutputDirectory;
  stateKey: { session: string; keyId: string; key: Buffer };
  secrets: Hidden;
  /** True if the controller reads logs that are compressed. */
  packsLogs: boolean;
  podText: PodText;
  clock: Clock;
  random: Random;
}

/** State that the controller has, or will have. */
export interface KnownState {
  /**
   * Digest of the last state sent or restored; of an empty directory at first. Undefined after a snapshot, which the controller
   * may store or not, unless that was of this state and this one is stored.
   */
  digest: string | undefined;
  /** Number of its frame; absent where it was restored. */
  seq?: number;
}

/** Sends the frames of a turn to the controller. */
export class TurnFrames {
  readonly #turn: Pick<Log, 'turn' | 'attempt'>;
  readonly #surroundings: FrameSurroundings;
  readonly #known: KnownState;

  constructor({ turn, attempt }: StartTurn | ResumeTurn, surroundings: FrameSurroundings, known: KnownState) {
    this.#turn = { turn, attempt };
    this.#surroundings = surroundings;
    this.#known = known;
  }

  /** Number of the next frame. */
  get next(): number {
    return this.#surroundings.sender.lastSeq + 1;
  }

  started(started: Started): void {
    this.#surroundings.sender.send('started', started);
  }

  /** Returns undefined when the turn wrote nothing, or more than can wait for acknowledgement. */
  log(written: WrittenText): number | undefined {
    if (written.bytes === 0) return undefined;
    const log = { ...this.#turn, ...written };
    const { sender, packsLogs } = this.#surroundings;
    const { message, binary } = packsLogs ? packLog(log) : { message: log };
    try {
      return sender.send('log', message, binary);
    } catch {
      return undefined;
    }
  }

  /** Sends the state for the next result or question, or returns the reason why it cannot be stored. */
  async state(): Promise<{ state: Result['state']; problem?: TurnFailure }> {
    try {
      return { state: await sendState(this.#surroundings, this.#known, this.#turn.turn) };
    } catch (error) {
      const problem =
        error instanceof TurnFailure
          ? error
          : new TurnFailure('StateNotStored', `the state could not be sent: ${errorCode(error)}`);
      return { state: 'Unchanged', problem };
    }
  }

  /** Sends what the turn left in BERTH_OUTPUT_DIR, or returns the reason why it cannot be kept. */
  async artifacts(): Promise<{ artifactsSeq?: number; redactions: number; problem?: TurnFailure }> {
    const { output, sender } = this.#surroundings;
    if (!output) return { redactions: 0 };
    try {
      const { files, contents, leftOut, redactions } = await output.collect();
      if (files.length + leftOut.count === 0) return { redactions };
      const message = { ...this.#turn, files, ...(leftOut.count > 0 && { leftOut }) };
      return { artifactsSeq: sender.send('artifacts', message, await packContents(contents)), redactions };
    } catch (error) {
      const problem =
        error instanceof TurnFailure
          ? error
          : new TurnFailure('ArtifactsNotStored', `the artifacts could not be sent: ${errorCode(error)}`);
      return { redactions: 0, problem };
    }
  }

  request(
    id: string,
    question: Question,
    rest: {
      process: 'Ended' | 'Alive';
      at: string;
      startedAt: string;
      ranMs: number;
      state: Result['state'];
      logSeq?: number;
    },
  ): number {
    return this.#surroundings.sender.send('approval', { ...this.#turn, id, ...question, ...rest });
  }

  /** Sends the result. A result that cannot be sent is replaced by a failure without output. */
  result(rest: Omit<Result, 'turn' | 'attempt'>): number {
    const { sender } = this.#surroundings;
    const result: Result = { ...this.#turn, ...rest };
    try {
      return sender.send('result', result);
    } catch (error) {
      const { output: _output, ...others } = result;
      const message = `the result could not be sent: ${errorCode(error)}`;
      return sender.send('result', { ...others, outcome: 'Failed', error: { code: 'ResultRejected', message } });
    }
  }
}

/**
 * Packs, seals and sends the state; a snapshot is always sent. After a turn the answer is 'Unchanged' when the state is the known
 * one and that is acknowledged. Else the controller might read the result and never the request that came with the state. Throws a
 * TurnFailure or FrameError when the state cannot be stored.
 */
export async function sendState(
  { state, stateKey, sender, secrets, random, podText }: Omit<FrameSurroundings, 'clock'>,
  known: KnownState,
  turn: string | undefined,
  maxBytes?: number,
): Promise<{ seq: number; digest: string } | 'Unchanged'> {
  const { digest, bytes, packed, skipped } = await state.pack(maxBytes);
  const isAcknowledged = known.seq === undefined || !sender.holds(known.seq);
  if (turn !== undefined && digest === known.digest && isAcknowledged) return 'Unchanged';
  const names = redact(skipped.join(', '), secrets.logs);
  if (names) podText.lines(`[berth: not stored, as neither file nor directory nor link: ${names}]\n`);
  const { session, keyId, key } = stateKey;
  const sealed = sealState(key, packed, { session, keyId }, random);
  const seq = sender.send('state', { ...(turn && { turn }), digest, keyId, bytes }, sealed);
  // A snapshot may be stored or dropped; a turn's state is stored with its result, or the pod is given up.
  if (turn !== undefined) Object.assign(known, { digest, seq });
  else if (digest !== known.digest || !isAcknowledged) known.digest = undefined;
  return { seq, digest };
}
