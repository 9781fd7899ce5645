import assert from 'node:assert/strict';
import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, describe, test } from 'vitest';
import { MAX_PATH_BYTES } from '../../../../runner/state/limits.ts';
import { packDirectory } from '../../../../runner/state/pack.ts';
import { unpackDirectory } from '../../../../runner/state/unpack.ts';
import { walk } from '../../../../runner/state/walk.ts';

const root = mkdtempSync(join(tmpdir(), 'berth-trees-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const RUNS = Number(process.env.BERTH_TREES ?? 40);

/** A name of up to 255 bytes, made of one alphabet: short ones, those about as long as a header holds, and the longest. */
const name = fc
  .tuple(
    fc.constantFrom('a', 'ü', '𝄞', '=', ' ', '\n', '\\', '"', '\u{feff}', '1', '-', "'", '.x'),
    fc.oneof(fc.integer({ min: 1, max: 8 }), fc.constantFrom(50, 99, 100, 101, 155, 156, 255)),
  )
  .map(([letter, bytes]) => letter.repeat(Math.max(1, Math.floor(bytes / Buffer.byteLength(letter)))));

type Node =
  | { kind: 'file'; name: string; size: number; us: number; mode: number }
  | { kind: 'link'; name: string; target: string }
  | { kind: 'same'; name: string; of: number }
  | { kind: 'directory'; name: string; mode: number; nodes: Node[] };

const file = fc.record({
  kind: fc.constant('file' as const),
  name,
  size: fc.oneof(fc.constantFrom(0, 1, 511, 512, 513), fc.integer({ min: 0, max: 3000 })),
  us: fc.oneof(
    fc.nat(2 ** 31 - 1).map((seconds) => seconds * 1e6),
    fc.maxSafeNat().map((us) => us % 2e15),
    fc.constantFrom(1, 999_999, 1000, 2_147_483_647_999_999),
  ),
  mode: fc.constantFrom(0o600, 0o644, 0o755, 0o400, 0o777),
});
const link = fc.record({
  kind: fc.constant('link' as const),
  name,
  target: fc
    .tuple(name, fc.integer({ min: 1, max: 16 }))
    .map(([one, times]) => Array(times).fill(one).join('/').slice(0, 1000)),
});
const same = fc.record({ kind: fc.constant('same' as const), name, of: fc.nat() });
const { nodes } = fc.letrec<{ node: Node; nodes: Node[] }>((tie) => ({
  node: fc.oneof({ maxDepth: 12, withCrossShrink: true }, file, link, same, {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('directory' as const),
      name,
      mode: fc.constantFrom(0o700, 0o755, 0o500),
      nodes: tie('nodes') as fc.Arbitrary<Node[]>,
    }),
  }),
  nodes: fc.uniqueArray(tie('node') as fc.Arbitrary<Node>, { maxLength: 4, selector: (node) => node.name }),
}));

let count = 0;
function fresh(): string {
  count += 1;
  const path = join(root, `t${count}`);
  mkdirSync(path);
  return path;
}

/** Makes the tree on disk. What the file system takes no path for is left out. */
function make(directory: string, tree: readonly Node[], files: string[] = []): void {
  for (const node of tree) {
    const path = join(directory, node.name);
    if (Buffer.byteLength(path) > root.length + MAX_PATH_BYTES) continue;
    if (node.kind === 'file') {
      writeFileSync(path, 'x'.repeat(node.size));
      chmodSync(path, node.mode);
      utimesSync(path, 0, node.us / 1e6);
      files.push(path);
    } else if (node.kind === 'link') {
      symlinkSync(node.target, path);
    } else if (node.kind === 'same') {
      const other = files[node.of % Math.max(1, files.length)];
      if (other) linkSync(other, path);
    } else {
      mkdirSync(path);
      make(path, node.nodes, files);
      chmodSync(path, node.mode);
    }
  }
}

/** What is in a directory, as far as it has to survive. */
function contentOf(directory: string): unknown[] {
  const first = new Map<bigint, string>();
  return [...walk(directory)].map(({ name, path, type }) => {
    const { mode, size, mtimeNs, ino } = lstatSync(path, { bigint: true });
    if (type === 'symlink') return { name, type, target: readlinkSync(path) };
    const permissions = mode & 0o777n;
    if (type === 'directory') return { name, type, permissions };
    const isSameAs = first.get(ino) ?? '';
    if (!first.has(ino)) first.set(ino, name);
    return { name, type, permissions, size, us: mtimeNs / 1000n, isSameAs, content: readFileSync(path, 'latin1') };
  });
}

describe('state', () => {
  test('whatever packing accepts, unpacking restores: names, links, depths, sizes and times to the microsecond', async () => {
    await fc.assert(
      fc.asyncProperty(nodes, async (tree) => {
        const from = fresh();
        const to = fresh();
        try {
          make(from, tree);
          const { packed, digest, bytes } = await packDirectory(from);
          await unpackDirectory(to, packed, digest);
          assert.deepEqual(contentOf(to), contentOf(from));
          assert.equal((await packDirectory(to)).digest, digest, 'the restored state counts as unchanged');
          // What is counted is what the archive has: the limit is met to the byte.
          assert.equal(zstdDecompressSync(packed).length, bytes);
          await packDirectory(from, bytes);
          if (bytes > 1024) await assert.rejects(packDirectory(from, bytes - 1), { code: 'StateTooLarge' });
        } finally {
          for (const path of [from, to]) rmSync(path, { recursive: true, force: true });
        }
      }),
      { numRuns: RUNS },
    );
  });
});
