import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { encodeFrame, FrameDecoder } from '../../../../core/enter/frames.ts';
import { FakeRunner, HelperRun, noHelper } from '../../../support/helper-run.ts';
import { skipIf } from '../../../support/requires.ts';

describe('the helper between a client and the runner', skipIf(noHelper), () => {
  test('passes the hello on, then bytes both ways, and ends with the runner after its last byte', async () => {
    using runner = await FakeRunner.listening();
    const connected = runner.connected();
    await using helper = new HelperRun(runner.podUID);
    helper.hello({ want: 'commands' });
    const socket = await connected;
    const decoder = new FrameDecoder();
    const got: string[] = [];
    socket.on('data', (chunk: Buffer) => {
      for (const { kind, payload } of decoder.push(chunk)) got.push(`${kind} ${payload}`);
    });
    await expect.poll(() => got).toEqual(['hello {"want":"commands"}']);
    socket.write(encodeFrame('ready', Buffer.from('{}')));
    helper.send('input', Buffer.from('typed'));
    await expect.poll(() => got.at(-1)).toBe('input typed');
    const piece = Buffer.alloc(60_000, 'x');
    for (let count = 0; count < 50; count += 1) socket.write(encodeFrame('output', piece));
    socket.end(encodeFrame('exit', Buffer.from('{}')));
    const frames = await helper.all();
    expect(frames.map(({ kind }) => kind)).toEqual(['ready', ...Array(50).fill('output'), 'exit']);
    expect(await helper.exited).toBe(0);
  });

  test('passes the last words of a runner on that takes nothing more', async () => {
    using runner = await FakeRunner.listening();
    const connected = runner.connected();
    await using helper = new HelperRun(runner.podUID);
    helper.hello();
    const socket = await connected;
    socket.write(encodeFrame('ready', Buffer.from('{}')));
    await expect.poll(() => helper.frames.length).toBe(1);
    helper.child.kill('SIGSTOP');
    // The input of the client meets the closed end before the helper has read the last frames.
    helper.send('input', Buffer.from('x'));
    socket.write(encodeFrame('output', Buffer.alloc(60_000)));
    await new Promise<void>((resolve) => socket.end(encodeFrame('exit', Buffer.from('{}')), resolve));
    socket.destroy();
    helper.child.kill('SIGCONT');
    expect((await helper.all()).map(({ kind }) => kind)).toEqual(['ready', 'output', 'exit']);
  });

  test('a client that does not read holds the runner, and one that is gone ends the helper', async () => {
    using runner = await FakeRunner.listening();
    const connected = runner.connected();
    await using helper = new HelperRun(runner.podUID);
    helper.hello();
    const socket = await connected;
    helper.child.stdout?.pause();
    let waits = false;
    for (let count = 0; count < 200 && !waits; count += 1) {
      waits = !socket.write(encodeFrame('output', Buffer.alloc(60_000)));
      if (waits) waits = await Promise.race([once(socket, 'drain').then(() => false), pause()]);
    }
    expect(waits).toBe(true);
    helper.child.stdout?.destroy();
    helper.child.stdin?.end();
    await new Promise((resolve) => socket.once('close', resolve));
    expect(await helper.exited).toBe(0);
  });

  test('says NotReady where no runner listens, and where another process listens in its place', async () => {
    await using alone = new HelperRun('00000000-nobody');
    alone.hello();
    expect(JSON.parse(String((await alone.all())[0]?.payload))).toMatchObject({ code: 'NotReady' });
    using impostor = await FakeRunner.listening();
    await using helper = new HelperRun(impostor.podUID, {});
    helper.hello();
    const [frame] = await helper.all();
    expect(frame?.kind).toBe('refused');
    expect(String(frame?.payload)).toContain('another process than the runner');
  });

  test('without a hello it says so and opens nothing', async () => {
    using runner = await FakeRunner.listening();
    await using helper = new HelperRun(runner.podUID);
    helper.child.stdin?.end('GET / HTTP/1.1\r\n\r\n');
    expect(await helper.exited).toBe(2);
    expect(helper.stderr).toContain('no hello came');
  });
});

/** Long enough for a socket that has room to say so. */
const pause = () => new Promise<boolean>((resolve) => setTimeout(() => resolve(true), 300));
