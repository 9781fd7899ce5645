import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, test } from 'vitest';
import { TreeMemory } from '../../../../runner/limits/tree-memory.ts';

const MB = 1_000_000;
/** Part of an amount that a garbage collection of this process cannot hide. */
const MOST = 0.7;

const running: ChildProcess[] = [];
afterEach(async () => {
  for (const child of running.splice(0)) {
    process.kill(-(child.pid as number), 'SIGKILL');
    await once(child, 'exit');
  }
});

const bytesWithin = (limit: number) => TreeMemory.within(String(limit))?.read().bytes ?? 0;

/** Starts a Python program that prints a line once it has taken its memory; returns by how much this tree has grown. */
async function taken(program: string): Promise<{ grown: number; before: number }> {
  const before = bytesWithin(Number.MAX_SAFE_INTEGER);
  const child = spawn('python3', ['-c', program], { stdio: ['ignore', 'pipe', 'inherit'], detached: true });
  running.push(child);
  await once(child.stdout, 'data');
  return { grown: bytesWithin(Number.MAX_SAFE_INTEGER) - before, before };
}

test('descendants of every depth count', async () => {
  const { grown } = await taken(`
import os, time
kept = bytearray(b'1') * ${100 * MB}
read, write = os.pipe()
if os.fork() == 0:
    kept[::4096] = bytes(len(kept[::4096]))
    if os.fork() == 0:
        kept[::4096] = bytes(len(kept[::4096]))
        os.write(write, b'.')
    time.sleep(600)
os.read(read, 1)
print('taken', flush=True)
time.sleep(600)`);
  assert.ok(grown > 300 * MB * MOST, `${grown}`);
});

test('pages that processes share after a fork count once where all of them would be above the limit', async () => {
  const { grown, before } = await taken(`
import os, time
kept = bytearray(b'1') * ${100 * MB}
for i in range(8):
    if os.fork() == 0: time.sleep(600)
print('taken', flush=True)
time.sleep(600)`);
  assert.ok(grown > 900 * MB * MOST, `each counts all of them: ${grown}`);
  const limit = before + 400 * MB;
  const now = TreeMemory.within(String(limit))?.read();
  assert.ok(now && now.limit === limit && now.bytes < limit && now.bytes > before, JSON.stringify(now));
});

test('a program whose main thread has ended counts', async () => {
  const { grown } = await taken(`
import ctypes, os, threading, time
kept = bytearray(b'1') * ${100 * MB}
def other():
    while b'State:\\tZ' not in open(f'/proc/{os.getpid()}/status', 'rb').read(): time.sleep(0.01)
    print('taken', flush=True)
    time.sleep(600)
threading.Thread(target=other).start()
ctypes.CDLL(None).syscall({'x86_64': 60, 'aarch64': 93}[os.uname().machine], 0)`);
  assert.ok(grown > 100 * MB * MOST, `${grown}`);
});

test('pages of files do not count', async () => {
  const { grown } = await taken(`
import mmap, sys, time
file = open('${process.execPath}', 'rb')
mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
mapped[::4096]
print('taken', flush=True)
time.sleep(600)`);
  assert.ok(grown < 60 * MB, `${grown}`);
});

test('nothing is measured without a limit', () => {
  assert.equal(TreeMemory.within(undefined), undefined);
});
