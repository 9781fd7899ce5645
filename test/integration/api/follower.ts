import assert from 'node:assert/strict';

export interface Event {
  id: string;
  type: string;
  // biome-ignore lint/suspicious/noExplicitAny: the tests check the data
  data: any;
  /** Time at which it was read, milliseconds since the epoch. */
  readAt: number;
}

/** A follower of a stream, and the events that it has read. */
export class Follower {
  readonly events: Event[] = [];
  ended = false;
  /** Resolves when it may read on. */
  #mayRead: Promise<void> = Promise.resolve();
  #text = '';
  readonly #stop: AbortController;

  private constructor(stop: AbortController) {
    this.#stop = stop;
  }

  static async open(url: string, token: string, lastEventId?: string): Promise<Follower> {
    const stop = new AbortController();
    const headers = { authorization: `Bearer ${token}`, ...(lastEventId && { 'last-event-id': lastEventId }) };
    const answer = await fetch(url, { headers, signal: stop.signal });
    assert.equal(answer.status, 200, answer.ok ? '' : await answer.text());
    const follower = new Follower(stop);
    void follower.#read(answer.body as AsyncIterable<Uint8Array>);
    return follower;
  }

  close(): void {
    this.#stop.abort();
  }

  /** Stops reading; the returned function lets it read on. */
  pause(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#mayRead = promise;
    return resolve;
  }

  of(type: string): Event[] {
    return this.events.filter((event) => event.type === type);
  }

  /** Phases of a turn, without repetitions. */
  phases(turn: string): string[] {
    const phases = this.of('turn').flatMap(({ data }) => (data.turn === turn ? [data.phase as string] : []));
    return phases.filter((phase, i) => phase !== phases[i - 1]);
  }

  async #read(stream: AsyncIterable<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    try {
      for await (const chunk of stream) {
        this.#text += decoder.decode(chunk, { stream: true });
        const blocks = this.#text.split('\n\n');
        this.#text = blocks.pop() as string;
        for (const block of blocks) {
          const [, id = '', type = '', data = ''] = /^id: (.*)\nevent: (.*)\ndata: (.*)$/.exec(block) ?? [];
          if (id) this.events.push({ id, type, data: JSON.parse(data), readAt: Date.now() });
          else assert.match(block, /^: /);
        }
        await this.#mayRead;
      }
    } catch {
      // The test has stopped it, or the server was.
    } finally {
      this.ended = true;
    }
  }
}
