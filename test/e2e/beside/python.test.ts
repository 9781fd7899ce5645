import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'vitest';
import { EXAMPLE_WHEELS, exampleCommands, PYTHON_EXAMPLE } from '../../support/python-example.ts';
import {
  type Any,
  apply,
  berth,
  checkout,
  ended,
  get,
  kubectl,
  makeNamespace,
  session,
  turn,
  until,
} from '../support/cluster.ts';
import { pythonAgent } from '../support/images.ts';
import { type IndexSettings, startIndex } from '../support/package-index.ts';

const agent = { class: 'python', agent: { command: pythonAgent } };

/** Modules that wheels build upon, each with a library of the image behind it, and the certificates for downloads. */
const MODULES = `
import bz2, ctypes, hashlib, json, lzma, os, pyexpat, sqlite3, ssl, venv, zlib
ctypes.CDLL("libstdc++.so.6"), ctypes.CDLL("libgcc_s.so.1"), ctypes.CDLL("libresolv.so.2")
print(json.dumps({
    "certificates": len(ssl.create_default_context().get_ca_certs()) > 50,
    "ffi": ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda n: n + 1)(1),
    "digest": hashlib.new("sha3_256", b"").name,
    "python": os.path.realpath("/usr/bin/python") == os.path.realpath("/usr/bin/python3"),
}))
`;

describe('the class python', () => {
  test('runs the README’s agent by its one command, with no image built for it', async (t) => {
    const namespace = await makeNamespace(t);
    const readme = readFileSync(join(checkout, 'README.md'), 'utf8');
    const [, program = ''] = /```python\n([^`]+)```/.exec(readme) ?? [];
    const [, args = '', input = ''] = /^\$ berth (run .*) --input '(.*)' -- python3 agent\.py$/m.exec(readme) ?? [];
    const cwd = mkdtempSync(join(tmpdir(), 'berth-e2e-python-'));
    t.onTestFinished(() => rmSync(cwd, { recursive: true, force: true }));
    writeFileSync(join(cwd, 'agent.py'), program);
    const words = [...args.split(' '), '-n', namespace, '--input', input, '--', 'python3', 'agent.py'];
    const { code, stdout, stderr } = await berth(words, { cwd });
    assert.equal(code, 0, stderr);
    assert.deepEqual(JSON.parse(stdout), { square: 9 });
  });

  test('has what wheels need', async (t) => {
    const namespace = await makeNamespace(t);
    const modules = { command: ['python3', '-c', MODULES], result: 'Json' };
    await apply(session(namespace, 'py', { class: 'python', agent: modules }), turn(namespace, 'py-1', 'py', null));
    const { status } = await ended(namespace, 'py-1');
    assert.equal(status.phase, 'Succeeded', JSON.stringify(status));
    assert.deepEqual(status.output, { certificates: true, ffi: 2, digest: 'sha3_256', python: true });
  });
});

describe('an agent written in Python', () => {
  test('prints an envelope among other text, which is kept as log', async (t) => {
    const namespace = await makeNamespace(t);
    await apply(session(namespace, 'py', agent), turn(namespace, 'py-1', 'py', { numbers: [1, 2, 39], note: 'a' }));
    const { status } = await ended(namespace, 'py-1');
    assert.equal(status.phase, 'Succeeded', JSON.stringify(status));
    assert.deepEqual(status.output, { notes: ['a'], sum: 42, turn: 'py-1' });
    assert.equal(status.turnCount, 1);
    assert.match(status.log.inline, /loading model/);
    assert.match(status.log.inline, /thread still talking/);
    assert.match(status.log.inline, /api key: \[REDACTED\]/);
    assert.doesNotMatch(status.log.inline, /sk-abc/);
  });

  test('an error in its envelope is the error of the turn', async (t) => {
    const namespace = await makeNamespace(t);
    await apply(session(namespace, 'py', agent), turn(namespace, 'py-1', 'py', { fail: 'no such model' }));
    const { status } = await ended(namespace, 'py-1');
    assert.equal(status.phase, 'Failed');
    assert.match(status.error.message, /no such model/);
  });

  test('a suspended session wakes for a turn with its state intact', async (t) => {
    const namespace = await makeNamespace(t);
    await apply(session(namespace, 'py', agent), turn(namespace, 'py-1', 'py', { note: 'before' }));
    await ended(namespace, 'py-1');
    const patch = JSON.stringify({ spec: { suspend: true } });
    await kubectl(['patch', 'session', 'py', '-n', namespace, '--type=merge', '-p', patch]);
    await until(namespace, 'session', 'py', ({ status }) => status.phase === 'Suspended');
    assert.deepEqual((await get(['pods', '-n', namespace])).items, []);

    await apply(turn(namespace, 'py-2', 'py', { note: 'after' }));
    const held = await until(namespace, 'turn', 'py-2', ({ status }) => /Held/.test(JSON.stringify(status.conditions)));
    assert.equal(held.status.phase, 'Queued');
    await kubectl(['patch', 'session', 'py', '-n', namespace, '--type=merge', '-p', '{"spec":{"suspend":false}}']);
    const { status } = await ended(namespace, 'py-2');
    assert.deepEqual(status.output.notes, ['before', 'after']);
    assert.equal(status.incarnation, 2);
  });
});

/** Gives the class `python` these settings while the test runs. Only this file's sessions are of that class. */
async function patchPython(t: TestContext, settings: IndexSettings): Promise<void> {
  const { spec } = await get(['sessionclass', 'python']);
  const replace = (value: object) =>
    kubectl([
      'patch',
      'sessionclass',
      'python',
      '--type=json',
      '-p',
      JSON.stringify([{ op: 'replace', path: '/spec', value }]),
    ]);
  t.onTestFinished(async () => void (await replace(spec)));
  await replace({ ...spec, ...settings, sandbox: { ...spec.sandbox, ...settings.sandbox } });
}

describe('examples/python-agent', () => {
  test('every command of its README prints what the README shows, and the packages are installed once', async (t) => {
    const namespace = await makeNamespace(t);
    await patchPython(t, await startIndex(namespace, EXAMPLE_WHEELS));
    for (const { args, stdout } of exampleCommands()) {
      const ended = await berth(['-n', namespace, ...args], { cwd: PYTHON_EXAMPLE });
      assert.deepEqual([ended.code, ended.stdout], [0, stdout], `berth ${args.join(' ')}: ${ended.stderr}`);
    }
    const { items } = await get(['sessions', '-n', namespace]);
    assert.equal(items.filter(({ spec }: Any) => spec.build).length, 1);
    const environments = await get(['environments', '-n', namespace]);
    assert.deepEqual(
      environments.items[0].status.packages.map(({ name }: Any) => name),
      ['humanize', 'python-dateutil', 'six'],
    );
  });
});
