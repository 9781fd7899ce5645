import { expect, test } from 'vitest';
import {
  encodeFrame,
  encodeJson,
  FRAMES,
  FrameDecoder,
  MAX_PAYLOAD,
  positionAt,
  positionBytes,
} from '../../../../core/enter/frames.ts';

const bytes = Buffer.concat([
  encodeJson('hello', { protocol: 1 }),
  encodeFrame('output', Buffer.from([1]), positionBytes(2 ** 40), Buffer.from('🙂\0')),
  encodeFrame('beat'),
]);

test('frames are the same however their bytes arrive', () => {
  for (let size = 1; size <= bytes.length; size += 1) {
    const decoder = new FrameDecoder();
    const frames = [];
    for (let at = 0; at < bytes.length; at += size) frames.push(...decoder.push(bytes.subarray(at, at + size)));
    expect(frames.map(({ kind }) => kind)).toEqual(['hello', 'output', 'beat']);
    expect(JSON.parse(String(frames[0]?.payload))).toEqual({ protocol: 1 });
    expect(positionAt(frames[1]?.payload as Buffer, 1)).toBe(2 ** 40);
    expect(String(frames[1]?.payload.subarray(9))).toBe('🙂\0');
    expect(decoder.isComplete).toBe(true);
  }
});

test('a payload that fills much of its chunk is not copied, and a smaller one does not keep the chunk in memory', () => {
  const content = Buffer.from(Array.from({ length: 40_000 }, (_, at) => at % 251));
  const [large, small] = [encodeFrame('data', content), encodeFrame('data', content.subarray(0, 9000))];
  const decoder = new FrameDecoder();
  // The second large frame comes in two chunks.
  const stream = Buffer.concat([small, large, small, large, small]);
  const chunks = [stream.subarray(0, 65_000), stream.subarray(65_000)].map((part) => Buffer.concat([part]));
  const frames = chunks.flatMap((chunk) => decoder.push(chunk));
  const expected = [9000, 40_000, 9000, 40_000, 9000];
  expect(frames.map(({ payload }) => payload.equals(content.subarray(0, payload.length)))).toEqual(Array(5).fill(true));
  expect(frames.map(({ payload }) => payload.length)).toEqual(expected);
  const isShared = ({ payload }: { payload: Buffer }) => chunks.some(({ buffer }) => buffer === payload.buffer);
  expect(frames.map(isShared)).toEqual([false, true, false, false, false]);
});

test('a stream that ends within a frame was cut', () => {
  const decoder = new FrameDecoder();
  decoder.push(bytes.subarray(0, bytes.length - 1));
  expect(decoder.isComplete).toBe(false);
});

test('bytes that are no frame, and frames that are too long, are refused', () => {
  expect(() => new FrameDecoder().push(Buffer.from('OCI runtime exec failed: …'))).toThrow('no frame');
  const long = Buffer.alloc(5);
  long.write(FRAMES.data);
  long.writeUInt32BE(MAX_PAYLOAD + 1, 1);
  expect(() => new FrameDecoder().push(long)).toThrow('no frame');
  expect(() => encodeFrame('data', Buffer.alloc(MAX_PAYLOAD + 1))).toThrow('at most 65536');
});

test('each kind of frame has a letter of its own', () => {
  const letters = Object.values(FRAMES);
  expect(new Set(letters).size).toBe(letters.length);
});
