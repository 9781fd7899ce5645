import { backoffMs, wait } from './clock.ts';
import { hasEnded } from './ends.ts';
import { DeadlineExceeded } from './errors.ts';
import type { Turn } from './generated/wire.ts';
import { objectOf } from './objects.ts';
import { replaced } from './refusal.ts';
import type { Caller, Json, Limits } from './retry.ts';

/** An answer that comes sooner has not waited: there is a new question, or the server is being stopped. */
const AT_ONCE_MS = 1_000;
/** Time that an answer at the end of the wait has to arrive, milliseconds. */
const ANSWER_MS = 1_000;

export interface AwaitOptions extends Limits {
  uid?: string | undefined;
  /** Is awaited with each answer that `isOver` does not take. */
  look?: ((turn: Turn) => Promise<void>) | undefined;
  /** Reports whether the turn is as it was waited for. Default: when it has ended. */
  isOver?: ((turn: Turn) => boolean) | undefined;
}

/**
 * Asks for the turn until it has ended. Without `deadlineMs` it waits as long as the turn takes; each question has the client's deadline.
 */
export async function awaitEnd(
  caller: Caller,
  path: string,
  { uid, signal, deadlineMs, look, isOver = hasEnded }: AwaitOptions,
): Promise<Json<Turn>> {
  const { clock, timing } = caller;
  const end = clock.monotonic() + (deadlineMs ?? Number.POSITIVE_INFINITY);
  // The question that was told last: the server waits on for the decision.
  let requestId: string | undefined;
  for (let early = 0; ; ) {
    const asked = clock.monotonic();
    const leftMs = end - asked;
    if (leftMs <= 0)
      throw new DeadlineExceeded(`${path}: the turn has not ended within ${(deadlineMs ?? 0) / 1000} s, and goes on`);
    const waitMs = Math.ceil(Math.min(timing.waitMs, leftMs));
    const answer = await caller.json<Turn>({
      method: 'GET',
      path,
      query: { wait: `${waitMs}ms`, requestId },
      waitMs,
      signal,
      deadlineMs: Math.min(caller.deadlineMs, leftMs + ANSWER_MS),
    });
    const turn = objectOf(answer.value, 'turn', caller);
    if (uid !== undefined && turn.metadata.uid !== uid) throw replaced('Turn', turn.metadata.name);
    if (isOver(turn)) return answer;
    requestId = turn.status?.approval?.requestId;
    await look?.(turn);
    early = await pauseIfEarly(caller, { early, asked, waitMs, end, signal });
  }
}

/**
 * Pauses after an answer that came before the server had waited, ever longer. Resolves with how many of them there were in a row. `asked` and `end` are
 * times of the clock.
 */
export async function pauseIfEarly(
  { clock, timing }: Caller,
  { early, asked, waitMs, end, signal }: Record<'early' | 'asked' | 'waitMs' | 'end', number> & Pick<Limits, 'signal'>,
): Promise<number> {
  if (clock.monotonic() - asked >= Math.min(AT_ONCE_MS, waitMs)) return 0;
  await wait(clock, Math.min(backoffMs(timing, early + 1), Math.max(0, end - clock.monotonic())), signal);
  return early + 1;
}
