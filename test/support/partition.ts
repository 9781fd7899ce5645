import type { Store } from '../../local/apiserver/types.ts';

/**
 * Partition between an embedded kubelet and the API: while it is down the kubelet receives nothing and sends nothing,
 * like a node without network or power. Its pods run on.
 */
export class Partition {
  #up: Promise<void> = Promise.resolve();
  #heal: () => void = () => {};

  set down(down: boolean) {
    this.#heal();
    if (!down) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#up = promise;
    this.#heal = resolve;
  }

  wrap(store: Store): Store {
    const whenUp =
      <A extends unknown[], R>(call: (...args: A) => Promise<R>) =>
      async (...args: A): Promise<R> => {
        await this.#up;
        return call(...args);
      };
    return {
      get: whenUp(store.get.bind(store)) as Store['get'],
      list: whenUp(store.list.bind(store)) as Store['list'],
      create: whenUp(store.create.bind(store)) as Store['create'],
      replace: whenUp(store.replace.bind(store)) as Store['replace'],
      patch: whenUp(store.patch.bind(store)) as Store['patch'],
      delete: whenUp(store.delete.bind(store)) as Store['delete'],
      watch: (resource, options) => this.#late(store.watch(resource, options)),
    };
  }

  async *#late<T>(events: AsyncIterable<T>): AsyncGenerator<T> {
    for await (const event of events) {
      await this.#up;
      yield event;
    }
  }
}
