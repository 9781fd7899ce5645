/** Output and input of commands in sessions, over connections that the API has opened. */

import { isUtf8 } from 'node:buffer';
import { anySignal } from '../../core/abort.ts';
import type { FrameStream } from '../../core/enter/client.ts';
import { encodeFrame, INPUT_WINDOW, positionAt, positionBytes } from '../../core/enter/frames.ts';
import type { CommandExit, CommandReady } from '../../core/enter/hello.ts';
import { type Clock, delay } from '../../core/runtime.ts';
import { Problem } from '../problems/problems.ts';

/** Bytes of each stream that an answer of `?wait` has at most. */
export const TEXT_BYTES = 1024 * 1024;
/** Bytes of a frame of input. */
const PIECE_BYTES = 32 * 1024;
/** Bytes of an output frame before the output: the stream and its position. */
const OUTPUT_HEAD = 9;

interface Output {
  stream: 'stdout' | 'stderr';
  position: number;
  bytes: Buffer;
}

const outputOf = (payload: Buffer): Output => ({
  stream: payload[0] === 2 ? 'stderr' : 'stdout',
  position: positionAt(payload, 1),
  bytes: payload.subarray(OUTPUT_HEAD),
});

interface Text {
  text?: string;
  base64?: string;
  truncated?: number;
}

/** Reads until the command has ended or the time is over. Resolves with what it printed, and the exit if it has ended. */
export async function collect(
  frames: FrameStream,
  { clock, ms, signal }: { clock: Clock; ms: number; signal: AbortSignal },
): Promise<{ exit?: CommandExit; stdout: Text; stderr: Text; bytes: number }> {
  const kept = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  const sizes = { stdout: 0, stderr: 0 };
  const truncated: { stdout?: number; stderr?: number } = {};
  let exit: CommandExit | undefined;
  const read = async () => {
    for await (const { kind, payload } of frames) {
      if (kind === 'exit') {
        // The exit is not acknowledged: a repeat of the request finds it.
        exit = JSON.parse(payload.toString('utf8')) as CommandExit;
        return;
      }
      if (kind !== 'output') continue;
      const { stream, position, bytes } = outputOf(payload);
      const room = TEXT_BYTES - sizes[stream];
      if (bytes.length > room) truncated[stream] ??= position + room;
      kept[stream].push(Buffer.from(bytes.subarray(0, room)));
      sizes[stream] += Math.min(room, bytes.length);
    }
  };
  const timer = new AbortController();
  const over = delay(clock, ms, anySignal(signal, timer.signal)).catch(() => undefined);
  await Promise.race([read(), over]).finally(() => timer.abort());
  frames.close();
  const text = (stream: 'stdout' | 'stderr'): Text => {
    const bytes = Buffer.concat(kept[stream]);
    const at = truncated[stream];
    const shown = isUtf8(bytes) ? { text: bytes.toString('utf8') } : { base64: bytes.toString('base64') };
    return { ...shown, ...(at === undefined ? {} : { truncated: at }) };
  };
  const bytes = sizes.stdout + sizes.stderr;
  return { ...(exit && { exit }), stdout: text('stdout'), stderr: text('stderr'), bytes };
}

/**
 * Yields the output of a command whose connection begins at `from`: the bytes of one stream, or frames of both with what was
 * lost and the exit. Ends where the output ends now unless `follow`. Fails where output of the one stream was lost that the
 * client has asked for or has begun to get: nobody takes what is left for the whole.
 */
export async function* outputFrom(
  frames: FrameStream,
  { stream, follow, from }: { stream: 'stdout' | 'stderr' | undefined; follow: boolean; from: number | undefined },
): AsyncGenerator<Buffer> {
  const { next } = frames.ready as CommandReady;
  let at = 0;
  if (!follow && (from ?? 0) >= next) return;
  for await (const { kind, payload } of frames) {
    if (kind === 'lost') {
      const [first, to] = [positionAt(payload), positionAt(payload, 8)];
      if (stream && (at > 0 || from !== undefined)) {
        const text = `Output from position ${first} to ${to} is kept no more; go on with from=${to}.`;
        throw new Problem('OutputLost', text);
      }
      at = to;
    }
    if (kind === 'output') {
      const output = outputOf(payload);
      at = output.position + output.bytes.length;
      if (stream === output.stream) yield output.bytes;
    }
    if (!stream && (kind === 'output' || kind === 'lost' || kind === 'exit')) yield encodeFrame(kind, payload);
    if (kind === 'exit' || (!follow && at >= next)) return;
  }
}

/**
 * Gives a command input from a position on, as fast as it reads. Resolves with the position of the next byte. Rejects with a Problem where
 * bytes before the position are missing.
 */
export async function giveInput(
  frames: FrameStream,
  bytes: AsyncIterable<Buffer>,
  { at, end }: { at: number; end: boolean },
): Promise<{ taken: number; sent: number }> {
  let { input: taken } = frames.ready as CommandReady;
  let isOver = false;
  let changed = Promise.withResolvers<void>();
  const reading = (async () => {
    for await (const { kind, payload } of frames) {
      if (kind === 'exit') return;
      if (kind !== 'taken') continue;
      taken = Math.max(taken, positionAt(payload));
      changed.resolve();
      changed = Promise.withResolvers();
    }
  })().finally(() => {
    isOver = true;
    changed.resolve();
  });
  reading.catch(() => {});
  const until = async (position: number) => {
    while (taken < position && !isOver) await changed.promise;
  };
  let position = at;
  try {
    if (at > taken) {
      const message = `must not be above ${taken}, the position of the next byte`;
      throw new Problem('Invalid', `at ${message}; send what is missing first.`, {
        fields: [{ field: 'at', message }],
      });
    }
    for await (const chunk of bytes) {
      for (let from = 0; from < chunk.length && !isOver; from += PIECE_BYTES) {
        const piece = chunk.subarray(from, from + PIECE_BYTES);
        await until(position + piece.length - INPUT_WINDOW / 2);
        await frames.send('input', positionBytes(position), piece);
        position += piece.length;
      }
    }
    if (end && !isOver) await frames.send('inputEnd', positionBytes(position));
    await until(position);
  } finally {
    frames.close();
  }
  await reading;
  return { taken, sent: position - at };
}
