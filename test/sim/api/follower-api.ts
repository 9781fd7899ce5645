import { ApiError, TransportError } from '../../../core/kube/errors.ts';
import { pods } from '../../../core/kube/resources.ts';
import type { KubeApi, ObjectRef } from '../../../core/kube/types.ts';
import type { ContainerLog } from '../cluster/container-log.ts';
import { IMPOSTOR } from '../cluster/impostors.ts';
import type { Dice } from '../random.ts';
import type { Process } from '../scheduler.ts';
import { SimApi, type SimApiOptions } from './client.ts';

/** Probability that a log breaks off, for each piece. */
const BREAKS = 0.01;
/** Time until a connection to a node that is lost counts as lost, milliseconds. */
const SILENT_MS = 15_000;

export type FollowerApiOptions = Omit<SimApiOptions, 'crashes' | 'observer' | 'onAnswer'>;

/** The API as a person sees it who follows sessions: logs are live and have timestamps. */
export class FollowerApi extends SimApi {
  readonly #options: FollowerApiOptions;

  constructor(options: FollowerApiOptions) {
    const nobody = { sent() {}, called() {}, answered() {} };
    super({ ...options, crashes: () => false, observer: nobody, onAnswer: () => {} });
    this.#options = options;
  }

  override async *podLog(ref: ObjectRef, options: Parameters<KubeApi['podLog']>[1]): AsyncIterable<Buffer> {
    const { process, kubelets, server, dice, rates } = this.#options;
    const { signal } = options;
    await process.sleep(dice.chance(0.3) ? dice.skewed(50, 3000) : dice.skewed(1, 30));
    signal?.throwIfAborted();
    if (server.isDown) throw new TransportError('connection refused (simulated)');
    if (dice.chance(rates().log)) throw new ApiError({ code: 500, reason: 'InternalError', message: 'simulated' });
    const pod = server.get(pods, ref.namespace, ref.name);
    if (!pod)
      throw new ApiError({
        code: 404,
        reason: 'NotFound',
        message: `pods "${ref.name}" not found`,
        details: { kind: 'pods' },
      });
    if (pod.metadata.labels?.[IMPOSTOR]) {
      yield Buffer.from(`${stampOf(process, process.monotonic())} impostor ${pod.metadata.uid}\n`);
      return;
    }
    const { container, isReachable } = kubelets.followed(ref);
    const since = options.sinceTime ? Math.floor(Date.parse(options.sinceTime) / 1000) * 1000 : 0;
    const skip = container.log.lines.findIndex(({ at }) => Date.parse(stampOf(process, at)) >= since);
    let next = skip === -1 ? container.log.lines.length : skip;
    const { starts } = server;
    for (;;) {
      const lines = container.log.lines.slice(next);
      next += lines.length;
      const text = Buffer.from(lines.map(({ at, text }) => `${stampOf(process, at)} ${text}`).join(''));
      for (const piece of inPieces(text, dice)) {
        await process.sleep(dice.skewed(0.1, 20));
        signal?.throwIfAborted();
        if (server.starts !== starts || dice.chance(BREAKS)) throw new TransportError('the log broke off (simulated)');
        yield piece;
      }
      if (next < container.log.lines.length) continue;
      if (container.exit || !options.follow) return;
      await change(container.log, process, signal);
      signal?.throwIfAborted();
      if (server.starts !== starts || !isReachable()) throw new TransportError('the log broke off (simulated)');
    }
  }
}

/** A log is read as it comes: pieces end within lines, too. */
function inPieces(text: Buffer, dice: Dice): Buffer[] {
  if (text.length === 0) return [];
  const at = dice.chance(0.3) ? dice.int(0, text.length) : text.length;
  return [text.subarray(0, at), text.subarray(at)].filter(({ length }) => length > 0);
}

/** Resolves once the log has changed, its container has ended, a while is over or the signal aborts. */
function change(log: ContainerLog, process: Process, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const over = () => {
      cancel();
      forget();
      signal?.removeEventListener('abort', over);
      resolve();
    };
    const cancel = process.after(SILENT_MS, 'the log is silent', over);
    const forget = log.onChange(() => process.after(0.1, 'the log goes on', over));
    signal?.addEventListener('abort', over, { once: true });
  });
}

/** Timestamp of a line, RFC 3339 with nanoseconds, by the clock of all nodes. */
function stampOf(process: Process, at: number): string {
  const whole = Math.floor(at);
  const nanoseconds = Math.floor((at - whole) * 1e6);
  const ms = new Date(process.now() - Math.floor(process.monotonic()) + whole).toISOString();
  return `${ms.slice(0, -1)}${String(nanoseconds).padStart(6, '0')}Z`;
}
