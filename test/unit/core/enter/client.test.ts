import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { type EnterError, enterSession, type FrameStream, helloFor } from '../../../../core/enter/client.ts';
import { encodeFrame, encodeJson, FrameDecoder, HEARTBEAT_MS, SILENCE_MS } from '../../../../core/enter/frames.ts';
import { HELPER_PATH, type Wish } from '../../../../core/enter/hello.ts';
import { ApiError, TransportError } from '../../../../core/kube/errors.ts';
import type { AttachOptions, KubeApi, PodStream, StreamEnd } from '../../../../core/kube/types.ts';
import type { StoredSession } from '../../../../core/resources/kinds.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const session = (status: object = { phase: 'Ready', podName: 's-1', incarnation: 3 }, spec: object = {}) =>
  ({ metadata: { name: 'notes', namespace: 'ns', uid: 'u' }, spec, status }) as unknown as StoredSession;
const READ: Wish = { want: 'read', root: 'work', path: 'a' };

/** A pod whose helper is played by the test. */
class Pod implements Pick<KubeApi, 'exec'> {
  readonly clock = new VirtualClock();
  readonly abort = new AbortController();
  readonly decoder = new FrameDecoder();
  readonly sent: { kind: string; payload: Buffer }[] = [];
  asked: unknown[] = [];
  options!: AttachOptions & { command: string[] };
  reads = true;
  isClosed = false;
  end!: (end: StreamEnd) => void;

  async exec(ref: object, options: AttachOptions & { command: string[] }): Promise<PodStream> {
    this.asked.push(ref);
    this.options = options;
    const closed = new Promise<StreamEnd>((resolve) => {
      this.end = resolve;
    });
    options.signal?.addEventListener('abort', () => this.end({ by: 'local' }));
    return {
      write: async (data) => void this.sent.push(...this.decoder.push(data as Buffer)),
      closeStdin() {},
      pause: () => {
        this.reads = false;
      },
      resume: () => {
        this.reads = true;
      },
      close: () => {
        this.isClosed = true;
        this.end({ by: 'local' });
      },
      closed,
    };
  }

  say(...bytes: Buffer[]): void {
    this.options.onStdout?.(Buffer.concat(bytes));
  }

  async open(wish = READ, target = session()): Promise<FrameStream> {
    const opening = enterSession(this, target, wish, { clock: this.clock, signal: this.abort.signal });
    opening.catch(() => {});
    await setImmediate();
    if (this.options) this.say(encodeJson('ready', { bytes: 5 }));
    return opening;
  }
}

const end = encodeJson('end', { bytes: 0, sha256: '' });

async function kinds(stream: FrameStream): Promise<string[]> {
  const found = [];
  for await (const { kind } of stream) found.push(kind);
  return found;
}

test('the hello names protocol, session and incarnation, and goes to the helper without arguments', async () => {
  const pod = new Pod();
  const stream = await pod.open();
  expect(pod.asked).toEqual([{ namespace: 'ns', name: 's-1' }]);
  expect(pod.options).toMatchObject({ container: 'session', command: [HELPER_PATH], stdin: true, stdout: true });
  const [hello] = pod.sent;
  expect(JSON.parse(String(hello?.payload))).toEqual({ protocol: 1, session: 'u', incarnation: 3, ...READ });
  expect(stream.ready).toEqual({ bytes: 5 });
  pod.say(encodeFrame('data', Buffer.from('hello')), encodeFrame('beat'), end);
  expect(await kinds(stream)).toEqual(['data', 'end']);
  expect(pod.isClosed).toBe(true);
});

test('a session without a pod is refused before anything is opened', () => {
  const code = (status: object, spec = {}) => {
    try {
      helloFor(session(status, spec), READ);
    } catch (error) {
      return (error as EnterError).code;
    }
    return undefined;
  };
  expect(code({ phase: 'Suspended', incarnation: 3 })).toBe('Suspended');
  expect(code({ phase: 'Finished' })).toBe('Stopping');
  expect(code({ phase: 'Queued' })).toBe('NotReady');
  expect(code({ podName: 's-1', incarnation: 1 }, { build: { hash: 'x' } })).toBe('Unsupported');
});

test('a refusal is an error with its code, before and after the answer', async () => {
  const pod = new Pod();
  const opening = enterSession(pod, session(), READ, { clock: pod.clock, signal: pod.abort.signal });
  await setImmediate();
  pod.say(encodeJson('refused', { code: 'FileNotFound', message: 'no file', field: 'path' }));
  await expect(opening).rejects.toMatchObject({ name: 'EnterError', code: 'FileNotFound', field: 'path' });

  const other = new Pod();
  const stream = await other.open();
  other.say(encodeFrame('data', Buffer.from('x')), encodeJson('refused', { code: 'FileChanged', message: 'shrank' }));
  await expect(kinds(stream)).rejects.toMatchObject({ code: 'FileChanged' });
});

test('a connection that ends before the last frame was lost, and what came before is given', async () => {
  const pod = new Pod();
  const stream = await pod.open();
  pod.say(encodeFrame('data', Buffer.from('x')));
  pod.end({ by: 'remote', exitCode: 0 });
  const iterator = stream[Symbol.asyncIterator]();
  expect((await iterator.next()).value?.kind).toBe('data');
  await expect(iterator.next()).rejects.toBeInstanceOf(TransportError);
  await expect(stream.send('beat')).rejects.toBeInstanceOf(TransportError);
});

test('a pod without the helper, without its container, and a pod that is gone have codes', async () => {
  const ended = async (message: string) => {
    const pod = new Pod();
    const opening = enterSession(pod, session(), READ, { clock: pod.clock, signal: pod.abort.signal });
    opening.catch(() => {});
    await setImmediate();
    pod.end({ by: 'remote', message });
    return opening.catch((error) => error.code);
  };
  const runc = 'OCI runtime exec failed: exec: "/berth-runner/bin/berth-enter": stat …: no such file or directory';
  expect(await ended(runc)).toBe('Unsupported');
  expect(await ended('unable to upgrade connection: container not found ("session")')).toBe('NotReady');

  const gone = new Pod();
  gone.exec = async () => {
    throw new ApiError({ code: 404, reason: 'NotFound', message: 'pods "s-1" not found', details: { kind: 'pods' } });
  };
  await expect(gone.open()).rejects.toMatchObject({ code: 'PodReplaced' });
});

test('text in place of frames is told', async () => {
  const pod = new Pod();
  const opening = enterSession(pod, session(), READ, { clock: pod.clock, signal: pod.abort.signal });
  await setImmediate();
  pod.say(Buffer.from('exec format error'));
  await expect(opening).rejects.toThrow('exec format error');
});

test('a reader that is slow holds the connection', async () => {
  const pod = new Pod();
  const stream = await pod.open();
  const piece = encodeFrame('data', Buffer.alloc(60_000));
  for (let count = 0; count < 5; count += 1) pod.say(piece);
  expect(pod.reads).toBe(false);
  const iterator = stream[Symbol.asyncIterator]();
  for (let count = 0; count < 4; count += 1) await iterator.next();
  expect(pod.reads).toBe(true);
});

test('both sides show that they live; a peer that is silent is given up, one that is not read is not', async () => {
  const pod = new Pod();
  const stream = await pod.open();
  await pod.clock.advance(HEARTBEAT_MS);
  expect(pod.sent.map(({ kind }) => kind)).toEqual(['hello', 'beat']);
  for (let count = 0; count < 5; count += 1) pod.say(encodeFrame('data', Buffer.alloc(60_000)));
  await pod.clock.advance(10 * SILENCE_MS);
  const iterator = stream[Symbol.asyncIterator]();
  for (let count = 0; count < 5; count += 1) await iterator.next();
  const next = iterator.next();
  next.catch(() => {});
  await pod.clock.advance(SILENCE_MS - 1);
  expect(pod.isClosed).toBe(false);
  await pod.clock.advance(SILENCE_MS);
  await expect(next).rejects.toThrow('no sign of life for 30 s');
  expect(pod.clock.pending).toBe(0);
});

test('an abort ends the connection with its reason, a close without an error', async () => {
  const pod = new Pod();
  const stream = await pod.open();
  pod.abort.abort(new Error('enough'));
  await expect(kinds(stream)).rejects.toThrow('enough');
  const other = new Pod();
  const closed = await other.open();
  closed.close();
  expect(await kinds(closed)).toEqual([]);
  expect(other.clock.pending).toBe(0);
});

test('what the helper says on stderr is whole, wherever its pieces end', async () => {
  const pod = new Pod();
  const opening = enterSession(pod, session(), READ, { clock: pod.clock, signal: pod.abort.signal });
  opening.catch(() => {});
  await setImmediate();
  for (const byte of Buffer.from('pas trouvé 😀')) pod.options.onStderr?.(Buffer.of(byte));
  pod.end({ by: 'remote' });
  await expect(opening).rejects.toThrow('pas trouvé 😀');
});
