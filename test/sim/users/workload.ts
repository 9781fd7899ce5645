import {
  type StoredSessionClass,
  type StoredTurn,
  sessionclasses,
  sessions,
  turns,
} from '../../../core/resources/kinds.ts';
import type { Plan } from '../cluster/agent.ts';
import { deeds } from './deeds.ts';
import { NO_RULES } from './specs.ts';
import type { Users } from './users.ts';
import { create, decide, edit } from './writes.ts';

/** Error message of a turn whose state was too large to be stored. */
const TOO_LARGE = /the state has \d+ bytes/;

/** Users who do one deed after the other, until `end`. */
export class Workload {
  readonly #users: Users;
  readonly #everyMs: number;
  readonly #drawn: typeof deeds;
  #number = 0;
  #over = false;

  constructor(users: Users, everyMs: number, only?: readonly string[]) {
    this.#users = users;
    this.#everyMs = everyMs;
    // The first two deeds, which create sessions and give turns, are always there.
    this.#drawn = deeds.filter(({ name }, index) => index < 2 || (only ? only.includes(name) : users.dice.chance(0.7)));
    this.#next();
  }

  /**
   * Ends the deeds and removes what keeps sessions from settling: holds are released, no idle session is kept, requests
   * are decided on. A session whose state is too large would keep its pod for ever, so a turn shrinks the state.
   */
  end(): void {
    const { server } = this.#users;
    this.#over = true;
    for (const one of server.list(sessionclasses)) this.#relax(one);
    this.#answer();
  }

  #relax(sessionClass: StoredSessionClass): void {
    void edit(this.#users.server, sessionclasses, sessionClass, { minIdle: 0, ...NO_RULES });
  }

  /** Decides on every request and releases every hold, repeatedly, because some appear only after the end. */
  #answer(): void {
    const { scheduler, dice, server } = this.#users;
    scheduler.after(dice.int(1000, 10_000), undefined, 'somebody who answers', () => {
      // A class that was deleted before the end may be created again after it, with its old fields.
      for (const one of server.list(sessionclasses)) if (one.spec.minIdle) this.#relax(one);
      for (const session of server.list(sessions)) {
        if (session.spec.suspend) void edit(server, sessions, session, { suspend: false });
      }
      for (const turn of server.list(turns)) {
        const { phase, approval, error } = turn.status ?? {};
        if (phase === 'AwaitingApproval') void decide(this.#users, turn, `a${++this.#number}`, approval?.id);
        if (TOO_LARGE.test(error?.message ?? '')) void this.#tidy(turn);
      }
      this.#answer();
    });
  }

  #tidy({ metadata: { namespace, uid }, spec: { session } }: StoredTurn): Promise<unknown> {
    const input = { ms: 10, output: 1, state: 1 } satisfies Plan;
    return create(this.#users.server, turns, namespace, `tidy-${uid}`, { session, input });
  }

  #next(): void {
    const { scheduler, dice, trace } = this.#users;
    // Deeds come in bursts, with pauses between them.
    const pause = dice.chance(0.3) ? 0.02 : 1.5;
    scheduler.after(this.#everyMs * pause * 2 * dice.uniform(), undefined, 'somebody', () => {
      if (this.#over) return;
      const deed = dice.weighted(this.#drawn);
      trace.line(() => ['user', deed?.name ?? 'nothing']);
      void deed?.do(this.#users, ++this.#number);
      this.#next();
    });
  }
}
