import { fieldsPayload } from '../../core/enter/frames.ts';
import type { Root } from '../../core/enter/hello.ts';
import type { Clock } from '../../core/runtime.ts';
import type { Roots } from './roots.ts';
import type { Uploads } from './uploads.ts';
import type { Visit } from './visit.ts';

/**
 * Transfers of files. The helper gets an order, and the client has to do with it alone from then on; its connection here lasts as long as
 * the transfer.
 */
export class Transfers {
  readonly #roots: Roots;
  readonly #uploads: Pick<Uploads, 'serve'>;
  readonly #clock: Clock;
  #open = 0;
  #lastAt: number | undefined;

  constructor(roots: Roots, uploads: Pick<Uploads, 'serve'>, clock: Clock) {
    this.#roots = roots;
    this.#uploads = uploads;
    this.#clock = clock;
  }

  serve(visit: Visit): void {
    const { want } = visit.hello;
    // Looking keeps no session from being idle.
    if (want !== 'list' && want !== 'stat') {
      this.#open += 1;
      visit.gone.addEventListener('abort', () => {
        this.#open -= 1;
        this.#lastAt = this.#clock.monotonic();
      });
    }
    order(visit, this.#roots, this.#uploads).catch((error: Error) =>
      visit.refuse({ code: 'FileFailed', message: error.message }),
    );
  }

  /** Milliseconds since content was last read, written or deleted, 0 during that; undefined where there has been none. */
  get idleMs(): number | undefined {
    if (this.#open > 0) return 0;
    return this.#lastAt === undefined ? undefined : Math.round(this.#clock.monotonic() - this.#lastAt);
  }
}

async function order(visit: Visit, roots: Roots, uploads: Pick<Uploads, 'serve'>): Promise<void> {
  const { hello } = visit;
  if (!('root' in hello)) return;
  const { want, root, path } = hello;
  const folder = await roots(root);
  if (folder === undefined) {
    visit.refuse({ code: 'FileNotFound', message: `the session has no ${root}: ${WITHOUT[root]}`, field: 'root' });
    return;
  }
  if (want === 'write' || want === 'fill' || want === 'delete') {
    uploads.serve(visit, folder);
    return;
  }
  const { offset = 0, length = -1 } = want === 'read' ? hello : {};
  visit.send('order', fieldsPayload([want, root, folder, path, offset, length]));
}

const WITHOUT: Record<Root, string> = {
  work: 'it has no working directory',
  workspace: 'its class gives it no volume',
  state: 'it keeps none',
  output: 'its class keeps no artifacts',
  agent: 'its agent came without files',
};
