import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { encodeFrame, encodeJson, FrameDecoder, HEARTBEAT_MS, SILENCE_MS } from '../../../../core/enter/frames.ts';
import type { Hello } from '../../../../core/enter/hello.ts';
import type { Bind } from '../../../../core/frames/messages.ts';
import { systemRandom } from '../../../../core/system.ts';
import { Transfers } from '../../../../runner/enter/files.ts';
import { type Entrance, listenForHelpers } from '../../../../runner/enter/listen.ts';
import { Uploads } from '../../../../runner/enter/uploads.ts';
import type { Visit } from '../../../../runner/enter/visit.ts';
import type { Access } from '../../../../runner/session/session.ts';
import { HelperRun, noHelper } from '../../../support/helper-run.ts';
import { skipIf } from '../../../support/requires.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const HELLO = { protocol: 1, session: 'u', incarnation: 2 };
const folder = mkdtempSync(join(tmpdir(), 'berth-listen-'));
const opened: { server: Server; sockets: Socket[] }[] = [];

/** A runner's listener whose visits of commands the test takes. */
class Runner {
  readonly podUID = randomUUID();
  readonly clock = new VirtualClock();
  readonly visits: Visit[] = [];
  readonly session = { access: 'Open' as Access, bind: bind(), outsidePacking: async () => false };
  readonly uploads = new Uploads({
    session: this.session,
    stateDirectory: join(folder, 'state'),
    volume: undefined,
    clock: this.clock,
    random: systemRandom,
  });
  readonly transfers = new Transfers(
    async (root) => (root === 'agent' ? undefined : join(folder, 'work')),
    this.uploads,
    this.clock,
  );
  readonly sockets: Socket[] = [];

  async listen(options: Partial<Entrance> = {}): Promise<this> {
    const door = (visit: Visit) => void this.visits.push(visit);
    const { podUID, session, clock, transfers } = this;
    const files = (visit: Visit) => transfers.serve(visit);
    const doors = { command: door, commands: door, signal: door, files, ports: door };
    const server = await listenForHelpers({ podUID, session, clock, doors, ...options });
    opened.push({ server, sockets: this.sockets });
    return this;
  }

  dial(): Dialled {
    const socket = connect(`\0berth/${this.podUID}`);
    this.sockets.push(socket);
    return new Dialled(socket);
  }

  async ask(hello: object): Promise<Dialled> {
    const dialled = this.dial();
    dialled.socket.write(encodeJson('hello', hello));
    return dialled;
  }

  /** The code and the field with which a hello is refused. */
  async refusal(hello: object): Promise<string> {
    const { code, field } = await (await this.ask({ ...HELLO, ...hello })).refused();
    return [code, field].filter(Boolean).join(' ');
  }
}

class Dialled {
  readonly socket: Socket;
  readonly frames: { kind: string; payload: Buffer }[] = [];
  readonly closed: Promise<unknown>;

  constructor(socket: Socket) {
    const decoder = new FrameDecoder();
    this.socket = socket;
    this.closed = new Promise((resolve) => socket.once('close', resolve));
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => this.frames.push(...decoder.push(chunk)));
  }

  async refused(): Promise<{ code: string; field?: string }> {
    await this.closed;
    const [frame] = this.frames;
    return frame?.kind === 'refused' ? JSON.parse(String(frame.payload)) : { code: `${frame?.kind}` };
  }
}

function bind(): Bind {
  return { session: { name: 'notes', namespace: 'ns', uid: 'u' }, incarnation: 2 } as Bind;
}

const COMMANDS = { want: 'commands' };
const WRITE = { want: 'write', root: 'work', path: 'a' };
const READ = { want: 'read', root: 'work', path: 'a' };

describe('the listener for helpers', () => {
  afterEach(() => {
    for (const { server, sockets } of opened.splice(0)) {
      for (const socket of sockets) socket.destroy();
      server.close();
    }
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test('a name that another process has is tried again at a pace that slows down to 30 s, and taken once it is free', async () => {
    const runner = new Runner();
    const squatter = createServer();
    await once(squatter.listen(`\0berth/${runner.podUID}`), 'listening');
    const onTaken = vi.fn();
    const listening = runner.listen({ onTaken });
    for (const pause of [1000, 2000, 4000, 8000, 16_000, 30_000]) {
      await expect.poll(() => runner.clock.nextIn).toBe(pause);
      await runner.clock.advance(pause);
    }
    await expect.poll(() => runner.clock.nextIn).toBe(30_000);
    squatter.close();
    await runner.clock.advance(30_000);
    await listening;
    expect(onTaken).toHaveBeenCalledOnce();
    expect(await runner.refusal({ ...COMMANDS, session: 'other' })).toBe('PodReplaced');
  });

  test('a hello is refused with the reason: another pod, not ready, suspended, stopping, a build', async () => {
    const runner = await new Runner().listen();
    expect(await runner.refusal({ ...COMMANDS, session: 'other' })).toBe('PodReplaced');
    expect(await runner.refusal({ ...COMMANDS, incarnation: 1 })).toBe('PodReplaced');
    for (const access of ['NotReady', 'Suspended', 'Stopping'] as const) {
      runner.session.access = access;
      expect(await runner.refusal(READ)).toBe(access);
    }
    runner.session.access = 'Open';
    runner.session.bind.builds = true;
    expect(await runner.refusal(READ)).toBe('Unsupported');
    expect(runner.visits).toHaveLength(0);
  });

  test('a hello that cannot be understood is refused with its field', async () => {
    const runner = await new Runner().listen();
    const refusals: [object, string][] = [
      [{ ...COMMANDS, protocol: 2 }, 'Unsupported protocol'],
      [{ ...COMMANDS, session: 1 }, 'Invalid session'],
      [{ want: 'fly' }, 'Unsupported want'],
      [{ ...READ, root: 'etc' }, 'Invalid root'],
      [{ ...READ, path: 'a\0b' }, 'Invalid path'],
      [{ ...READ, path: 'x'.repeat(5000) }, 'Invalid path'],
      [{ ...READ, path: 1 }, 'Invalid path'],
      [{ ...WRITE, root: 'output' }, 'NotWritable root'],
      [{ ...WRITE, path: '' }, 'Invalid path'],
      [{ ...WRITE, path: 'a//b' }, 'Invalid path'],
      [{ ...WRITE, path: '/a' }, 'Invalid path'],
      [{ ...WRITE, path: 'a/../../b' }, 'OutsideRoot path'],
      [{ ...WRITE, mode: 0o1777 }, 'Invalid mode'],
      [{ ...WRITE, modified: -1 }, 'Invalid modified'],
      [{ ...WRITE, sha256: 'A'.repeat(64) }, 'Invalid sha256'],
      [{ ...WRITE, length: 0.5 }, 'Invalid length'],
      [{ ...WRITE, want: 'delete', recursive: 'yes' }, 'Invalid recursive'],
      [{ ...READ, offset: -1 }, 'Invalid offset'],
      [{ ...READ, length: 1.5 }, 'Invalid length'],
      [{ ...READ, root: 'agent' }, 'FileNotFound root'],
    ];
    for (const [hello, expected] of refusals) expect([hello, await runner.refusal(hello)]).toEqual([hello, expected]);
    const other = runner.dial();
    other.socket.write(encodeFrame('input', Buffer.from('x')));
    expect(await other.refused()).toMatchObject({ code: 'Invalid' });
    const garbage = runner.dial();
    garbage.socket.write('GET / HTTP/1.1\r\n\r\n');
    await garbage.closed;
    expect(garbage.frames).toEqual([]);
  });

  test('a visit gets every frame after the hello, whenever it asks for them', async () => {
    const runner = await new Runner().listen();
    const client = runner.dial();
    const input = encodeFrame('input', Buffer.from('typed'));
    client.socket.write(Buffer.concat([encodeJson('hello', { ...HELLO, ...COMMANDS }), input, encodeFrame('beat')]));
    await expect.poll(() => runner.visits.length).toBe(1);
    const visit = runner.visits[0] as Visit;
    expect(visit.hello).toEqual({ ...HELLO, ...COMMANDS } as Hello);
    const got: string[] = [];
    visit.onFrame(({ kind, payload }) => got.push(`${kind} ${payload}`));
    client.socket.write(input);
    await expect.poll(() => got).toEqual(['input typed', 'input typed']);
    visit.send('ready', Buffer.from('{}'));
    visit.close();
    await client.closed;
    expect(client.frames.map(({ kind }) => kind)).toEqual(['ready']);
    await expect.poll(() => visit.gone.aborted).toBe(true);
  });

  test('a client that is silent loses its connection, one whose visit does not read does not', async () => {
    const runner = await new Runner().listen();
    const client = await runner.ask({ ...HELLO, ...COMMANDS });
    await expect.poll(() => runner.visits.length).toBe(1);
    const visit = runner.visits[0] as Visit;
    visit.pause();
    await runner.clock.advance(3 * SILENCE_MS);
    expect(visit.gone.aborted).toBe(false);
    visit.resume();
    await runner.clock.advance(HEARTBEAT_MS);
    await expect.poll(() => client.frames.some(({ kind }) => kind === 'beat')).toBe(true);
    client.socket.write(encodeFrame('beat'));
    await runner.clock.advance(SILENCE_MS);
    await client.closed;
    await expect.poll(() => visit.gone.aborted).toBe(true);
    expect(runner.clock.pending).toBe(0);
  });

  test(
    'a helper that is stopped loses its connection, however much waits for it; others are served',
    skipIf(noHelper),
    async () => {
      const runner = await new Runner().listen();
      await using helper = new HelperRun(runner.podUID);
      helper.hello({ ...HELLO, ...COMMANDS });
      await expect.poll(() => runner.visits.length).toBe(1);
      const visit = runner.visits[0] as Visit;
      helper.child.kill('SIGSTOP');
      helper.send('beat');
      while (visit.send('data', Buffer.alloc(60_000)));
      await runner.clock.advance(SILENCE_MS + HEARTBEAT_MS);
      await expect.poll(() => visit.gone.aborted).toBe(true);
      await runner.ask({ ...HELLO, ...COMMANDS });
      await expect.poll(() => runner.visits.length).toBe(2);
      helper.child.kill('SIGCONT');
      expect(await helper.exited).toBe(0);
      expect((await helper.all()).some(({ kind }) => kind === 'end')).toBe(false);
    },
  );

  test('a connection without a hello is closed', async () => {
    const runner = await new Runner().listen();
    const client = runner.dial();
    await once(client.socket, 'connect');
    await expect.poll(() => runner.clock.pending).toBe(1);
    await runner.clock.advance(10_000);
    await client.closed;
  });

  test('processes that the kubelet did not start are closed at once, and take nobody’s place', async () => {
    const own = process.pid;
    let pid = own;
    const runner = await new Runner().listen({ peerPid: () => pid });
    for (let count = 0; count < 100; count += 1) await (await runner.ask({ ...HELLO, ...COMMANDS })).closed;
    expect(runner.visits).toHaveLength(0);
    // PID 1 of any namespace has no parent in it.
    pid = 1;
    await runner.ask({ ...HELLO, ...COMMANDS });
    await expect.poll(() => runner.visits.length).toBe(1);
    for (const stranger of [0, 2 ** 22 + 1]) {
      pid = stranger;
      await (await runner.ask({ ...HELLO, ...COMMANDS })).closed;
    }
    expect(runner.visits).toHaveLength(1);
  });

  test('there are at most 64 connections, and one that ends makes room', async () => {
    const runner = await new Runner().listen();
    const first = await runner.ask({ ...HELLO, ...COMMANDS });
    for (let count = 1; count < 64; count += 1) await runner.ask({ ...HELLO, ...COMMANDS });
    await expect.poll(() => runner.visits.length).toBe(64);
    expect(await runner.refusal(COMMANDS)).toBe('TooManyConnections');
    first.socket.destroy();
    await expect.poll(() => runner.visits[0]?.gone.aborted).toBe(true);
    await runner.ask({ ...HELLO, ...COMMANDS });
    await expect.poll(() => runner.visits.length).toBe(65);
  });

  test('a transfer keeps the session from being idle until its end', async () => {
    const runner = await new Runner().listen();
    expect(runner.transfers.idleMs).toBeUndefined();
    const client = await runner.ask({ ...HELLO, ...READ });
    await expect.poll(() => client.frames.map(({ kind }) => kind)).toEqual(['order']);
    await runner.clock.advance(5000);
    expect(runner.transfers.idleMs).toBe(0);
    client.socket.destroy();
    await expect.poll(() => runner.transfers.idleMs).toBe(0);
    await expect
      .poll(async () => {
        await runner.clock.advance(1000);
        return runner.transfers.idleMs;
      })
      .toBeGreaterThanOrEqual(1000);
  });

  test('a look at files keeps no session from being idle', async () => {
    const runner = await new Runner().listen();
    for (const want of ['list', 'stat']) {
      const client = await runner.ask({ ...HELLO, ...READ, want });
      await expect.poll(() => client.frames.map(({ kind }) => kind)).toEqual(['order']);
      expect(runner.transfers.idleMs).toBeUndefined();
    }
  });

  test('the helper reads a file at the order of the runner', skipIf(noHelper), async () => {
    mkdirSync(join(folder, 'work'));
    writeFileSync(join(folder, 'work', 'a'), 'content');
    const runner = await new Runner().listen();
    await using helper = new HelperRun(runner.podUID);
    helper.hello({ ...HELLO, ...READ, offset: 3 });
    const frames = await helper.all();
    expect(frames.map(({ kind }) => kind)).toEqual(['ready', 'data', 'end']);
    expect(String(frames[1]?.payload)).toBe('tent');
    await using other = new HelperRun(runner.podUID);
    other.hello({ ...HELLO, ...READ, path: 'none' });
    expect(String((await other.all())[0]?.payload)).toContain('there is no work/none');
  });
});
