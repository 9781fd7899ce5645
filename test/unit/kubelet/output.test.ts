import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, describe, test } from 'vitest';
import { systemClock } from '../../../core/system.ts';
import { ChannelStream } from '../../../local/kubelet/channels.ts';
import { LogFile, type StreamName } from '../../../local/kubelet/log-file.ts';
import { Output, type OutputSink } from '../../../local/kubelet/output.ts';
import { Channels } from '../../support/channels.ts';
import { eventually } from '../../support/eventually.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-output-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Takes one piece and is then full. */
class SlowSink implements OutputSink {
  readonly wants: ReadonlySet<StreamName> = new Set(['stdout']);
  full = false;
  ended = false;
  taken = '';
  onRoom(): void {}
  write(_stream: StreamName, chunk: Buffer): void {
    this.taken += chunk;
    this.full = true;
  }
  end(): void {
    this.ended = true;
  }
}

function setUp(name: string, log = new LogFile(join(folder, name), systemClock)) {
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  const output = new Output(stdout, stderr, log);
  const sink = new SlowSink();
  output.add(sink);
  const logged = () => readFileSync(log.path, 'utf8').match(/\S+$/gm) ?? [];
  return { stdout, stderr, output, sink, logged };
}

describe('the output of a container', () => {
  test('stands still while one reader is full, and goes on when that one leaves', async () => {
    const { stdout, output, sink, logged } = setUp('leaves');
    stdout.write('one\n');
    await eventually(() => stdout.isPaused());
    stdout.write('two\n');
    await eventually(() => stdout.readableLength === 'two\n'.length);
    assert.deepEqual(logged(), ['one']);
    output.remove(sink);
    await eventually(() => logged().length === 2);
    assert.equal(sink.taken, 'one\n');
  });

  test('all gets into the log at the end, when readers that stall are ended', async () => {
    const { stdout, stderr, output, sink, logged } = setUp('ends');
    stdout.write('one\n');
    await eventually(() => stdout.isPaused());
    stdout.end('two\n');
    stderr.end();
    output.dropStalled();
    await output.ended;
    assert.equal(sink.ended, true);
    assert.deepEqual(logged(), ['one', 'two']);
  });

  test('reaches its readers also while the log can take nothing', async () => {
    const log = new LogFile('/dev/full', systemClock);
    const { stdout, stderr, output, sink } = setUp('full', log);
    stdout.end('one\nrest');
    stderr.end();
    await eventually(() => sink.taken === 'one\nrest');
    output.dropStalled();
    await output.ended;
    log.close();
    assert.equal(log.closed, true);
  });
});

test('stdin that a client sends before the command runs waits in the connection', async () => {
  const accepted = Promise.withResolvers<ChannelStream>();
  const server = createServer((_, response) => response.end());
  server.on('upgrade', (req, socket, head) => {
    ChannelStream.accept({ req, socket, head }, new URLSearchParams('stdin=true'), accepted.resolve);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = await Channels.open({ url, ca: '' }, '/');
  client.send('early ');
  client.send('words');
  const stream = await accepted.promise;
  // Earlier bytes would have been read before this answer, if anybody read.
  await fetch(url);
  let got = '';
  stream.readStdin({
    write: (data) => {
      got += data;
      return true;
    },
    onDrain: () => () => {},
    close() {},
  });
  await eventually(() => got === 'early words');
  client.close();
  server.close();
});
