import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createGunzip, gzipSync } from 'node:zlib';
import { type Header, pack } from 'tar-stream';
import { afterAll, describe, test } from 'vitest';
import { ArrivingFiles, unpackAgentFiles } from '../../../../runner/session/agent-files.ts';
import { Extraction } from '../../../../runner/state/extract.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-agent-files-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let number = 0;

type Entry = Partial<Header> & { name: string; content?: string };
async function archive(...entries: Entry[]): Promise<Buffer> {
  const tar = pack();
  for (const { content, ...header } of entries) tar.entry(header, content ?? '');
  tar.finalize();
  const pieces: Buffer[] = [];
  for await (const piece of tar) pieces.push(piece as Buffer);
  return gzipSync(Buffer.concat(pieces));
}

/** Unpacks into a new directory and returns its path. */
async function unpacked(...archives: Buffer[]): Promise<string> {
  const directory = join(folder, String(++number), 'agent');
  await unpackAgentFiles(directory, archives);
  return directory;
}

describe('files of an agent', () => {
  test('can be read, and executed where anybody may execute them, but not written', async () => {
    const directory = await unpacked(
      await archive(
        { name: 'lib', type: 'directory', mode: 0o700 },
        { name: 'lib/tool.sh', mode: 0o740, content: '#!/bin/sh' },
        { name: 'agent.py', mode: 0o666, content: 'print(1)' },
      ),
    );
    const mode = (name: string) => (statSync(join(directory, name)).mode & 0o777).toString(8);
    assert.deepEqual([mode('.'), mode('lib'), mode('lib/tool.sh'), mode('agent.py')], ['555', '555', '555', '444']);
    assert.equal(readFileSync(join(directory, 'agent.py'), 'utf8'), 'print(1)');
  });

  test('of a later archive replace those of an earlier one, in directories that both have', async () => {
    const lib = { name: 'lib/', type: 'directory' as const };
    const directory = await unpacked(
      await archive(lib, { name: 'lib/a', content: 'first' }, { name: 'lib/b', content: 'first' }),
      await archive(lib, { name: 'lib/b', content: 'second' }),
    );
    const contents = ['a', 'b'].map((name) => readFileSync(join(directory, 'lib', name), 'utf8'));
    assert.deepEqual(contents, ['first', 'second']);
  });

  test('may have any name, and be ten thousand', async () => {
    const names = ['a\nb', 'ü ', '"', '\\', '-rf', ...Array.from({ length: 10_000 }, (_, i) => `${i}`)];
    const directory = await unpacked(await archive(...names.map((name) => ({ name, content: name }))));
    assert.deepEqual(readdirSync(directory).sort(), [...names].sort());
  });

  test('are refused where one archive has a directory in the place of a file of another', async () => {
    const both = [await archive({ name: 'd', type: 'directory' }), await archive({ name: 'd', content: 'x' })];
    await assert.rejects(unpacked(...both), /"d" as a file and as a directory/);
  });

  const refused: [what: string, entries: Entry[], message: RegExp][] = [
    ['a path that leads out', [{ name: '../out' }], /"\.\.\/out", which is no path in it/],
    ['an absolute path', [{ name: '/etc/x' }], /"\/etc\/x", which is no path in it/],
    ['a path through a link', [{ name: 'l', type: 'symlink', linkname: 'm' }, { name: 'l/x' }], /no path in it/],
    ['a link that leads out', [{ name: 'l', type: 'symlink', linkname: '../../x' }], /leads out of it/],
    ['an absolute link', [{ name: 'l', type: 'symlink', linkname: '/etc/passwd' }], /leads out of it/],
    ['a device', [{ name: 'd', type: 'character-device' }], /"d" of type character-device/],
    ['a name that it has twice', [{ name: 'd', type: 'directory' }, { name: 'd' }], /"d" twice/],
  ];
  for (const [what, entries, message] of refused) {
    test(`with ${what} are refused, and nothing is left`, async () => {
      await assert.rejects(unpacked(await archive(...entries)), message);
      assert.deepEqual(readdirSync(join(folder, String(number))), []);
    });
  }

  test('that are cut off or not compressed are refused', async () => {
    const whole = await archive({ name: 'a', content: 'x'.repeat(5000) });
    await assert.rejects(unpacked(whole.subarray(0, -10)), /unexpected end of file/);
    await assert.rejects(unpacked(Buffer.from('no archive')), /incorrect header check/);
  });

  test('that are far larger than their archive are refused by what they unpack to, over all archives', async () => {
    const zeros = (name: string, MiB: number) => archive({ name, content: '\0'.repeat(MiB * 1024 * 1024) });
    const bomb = await zeros('a', 65);
    assert.ok(bomb.length < 100_000);
    await assert.rejects(unpacked(bomb), /agent\.files is larger than 67108864 bytes/);
    await assert.rejects(
      unpacked(await zeros('a', 40), await zeros('b', 40)),
      /agent\.files is larger than 67108864 bytes/,
    );
    assert.deepEqual(readdirSync(join(folder, String(number))), []);
  });

  test('that are too many are refused', async () => {
    const directory = mkdtempSync(join(folder, 'many-'));
    const extraction = new Extraction(directory, {
      what: 'agent.files',
      decompress: createGunzip,
      maxBytes: 1_000_000,
      maxEntries: 3,
      modeOf: () => 0o700,
      allowsLink: () => true,
    });
    await extraction.add(await archive({ name: 'a' }, { name: 'b' }));
    await assert.rejects(
      extraction.add(await archive({ name: 'c' }, { name: 'd', type: 'directory' })),
      /agent\.files holds more than 3 files and directories/,
    );
  });

  test('with a name that no file can have are refused, and nothing is left', async () => {
    for (const name of ['x'.repeat(300), 'a\0b'].map((text) => ({ name: 'short', pax: { path: text } }))) {
      await assert.rejects(unpacked(await archive(name)));
      assert.deepEqual(readdirSync(join(folder, String(number))), []);
    }
  });
});

describe('archives of the files', () => {
  const at = (version: string, index: number, count: number) => ({ version, index, count });
  test('are complete in whatever order they arrive, each once or again', () => {
    const arriving = new ArrivingFiles();
    assert.equal(arriving.take(at('v', 1, 2), Buffer.from('b')), undefined);
    assert.equal(arriving.take(at('v', 1, 2), Buffer.from('b')), undefined);
    assert.deepEqual(arriving.take(at('v', 0, 2), Buffer.from('a'))?.map(String), ['a', 'b']);
  });

  test('of two versions are never mixed', () => {
    const arriving = new ArrivingFiles();
    arriving.take(at('old', 0, 2), Buffer.from('a'));
    assert.equal(arriving.take(at('new', 1, 2), Buffer.from('b')), undefined);
    assert.deepEqual(arriving.take(at('new', 0, 2), Buffer.from('c'))?.map(String), ['c', 'b']);
  });
});
