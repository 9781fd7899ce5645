import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import { AgentFilesError, fileArchives } from '../../../../controller/settings/file-archives.ts';
import type { ConfigMap } from '../../../../core/kube/builtin.ts';
import type { AgentFile } from '../../../../core/resources/agent.ts';
import { unpackAgentFiles } from '../../../../runner/session/agent-files.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-file-archives-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const LABELS = { 'berth.dev/agent-files': 'true' };
function configMap(content: Partial<ConfigMap>, labels: Record<string, string> = LABELS): ConfigMap {
  return { metadata: { name: 'files', namespace: 'team', labels }, ...content };
}
const maps = (...list: ConfigMap[]) => new Map(list.map((each) => [each.metadata.name ?? '', each]));

let number = 0;
/** Files that a runner makes of the archives, with their modes. */
async function arrived(sources: AgentFile[], ...configMaps: ConfigMap[]): Promise<Record<string, string>> {
  const directory = join(folder, String(++number));
  await unpackAgentFiles(directory, await fileArchives(sources, maps(...configMaps)));
  const names = readdirSync(directory, { recursive: true, encoding: 'utf8' });
  const files = names.map((name) => [name, statSync(join(directory, name))] as const).filter(([, is]) => is.isFile());
  return Object.fromEntries(
    files.map(([name, { mode }]) => [name, `${(mode & 0o777).toString(8)} ${readFileSync(join(directory, name))}`]),
  );
}

describe('the files of an agent', () => {
  test('are all keys of a ConfigMap, text and binary', async () => {
    const found = configMap({ data: { 'agent.py': 'print(1)' }, binaryData: { 'model.bin': 'AQI=' } });
    assert.deepEqual(await arrived([{ configMap: 'files' }], found), {
      'agent.py': '444 print(1)',
      'model.bin': '444 \u0001\u0002',
    });
  });

  test('are the items that are named, where they are to be and as they may be executed', async () => {
    const found = configMap({ data: { run: '#!/bin/sh', other: '' } });
    const source = { configMap: 'files', items: [{ key: 'run', path: 'bin/deep/run.sh', mode: 0o755 }] };
    assert.deepEqual(await arrived([source], found), { 'bin/deep/run.sh': '555 #!/bin/sh' });
  });

  test('may be given inline, and later sources replace earlier ones', async () => {
    const found = configMap({ data: { 'a.txt': 'from the class', 'b.txt': 'stays' } });
    const sources = [{ configMap: 'files' }, { inline: { 'a.txt': 'own', 'd/c.txt': 'new' } }];
    assert.deepEqual(await arrived(sources, found), { 'a.txt': '444 own', 'b.txt': '444 stays', 'd/c.txt': '444 new' });
  });

  test('may be an archive in a key of a ConfigMap', async () => {
    const [archive = Buffer.alloc(0)] = await fileArchives([{ inline: { 'x/y': 'packed' } }], maps());
    const found = configMap({ binaryData: { 'files.tar.gz': archive.toString('base64') } });
    assert.deepEqual(await arrived([{ configMap: 'files', archive: 'files.tar.gz' }], found), { 'x/y': '444 packed' });
  });

  test('are the same bytes when they are packed again', async () => {
    const source = { inline: { a: '1', 'b/c': '2' } };
    assert.deepEqual(await fileArchives([source], maps()), await fileArchives([source], maps()));
  });

  const refused: [what: string, source: AgentFile, found: ConfigMap[], message: RegExp][] = [
    ['no such ConfigMap', { configMap: 'files' }, [], /no ConfigMap "files" with the label/],
    ['a ConfigMap without the label', { configMap: 'files' }, [configMap({ data: { a: '' } }, {})], /label the one/],
    [
      'no such key',
      { configMap: 'files', items: [{ key: 'b', path: 'b' }] },
      [configMap({ data: { a: '' } })],
      /no key "b"/,
    ],
    ['no such archive', { configMap: 'files', archive: 'b' }, [configMap({})], /no key "b"/],
  ];
  for (const [what, source, found, message] of refused) {
    test(`are refused where there is ${what}`, async () => {
      await assert.rejects(fileArchives([source], maps(...found)), (error: Error) => {
        assert.ok(error instanceof AgentFilesError);
        assert.match(error.message, message);
        return true;
      });
    });
  }
});
