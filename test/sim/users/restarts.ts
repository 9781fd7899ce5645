import { sessions } from '../../../core/resources/kinds.ts';
import { repeated, type Surroundings } from './repeated.ts';
import { edit } from './writes.ts';

/** Users who edit what the pods of sessions have, and restart sessions, until `end`. */
export class Restarters {
  readonly #here: Surroundings;
  readonly #stop: () => void;
  #number = 0;

  constructor(surroundings: Surroundings) {
    this.#here = surroundings;
    this.#stop = repeated(surroundings, 'somebody who restarts sessions', surroundings.dice.skewed(500, 10_000), () =>
      this.#act(),
    );
  }

  /** Ends the edits. Restarts that were asked for are still carried out. */
  end(): void {
    this.#stop();
  }

  #act(): void {
    const { dice, server, trace } = this.#here;
    const session = dice.pick(server.list(sessions).filter(({ spec }) => spec.build === undefined));
    const number = ++this.#number;
    const agent = { command: ['agent', `${number}`] };
    const restartRequest = `again-${number}`;
    const change = dice.pick([{ agent }, { restartRequest }, { agent, restartRequest }]);
    trace.line(() => ['user', 'edits', session?.metadata.name ?? 'nothing', Object.keys(change).join()]);
    if (session) void edit(server, sessions, session, change);
  }
}
