import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'vitest';
import { EXAMPLE_WHEELS, exampleCommands, PYTHON_EXAMPLE } from '../support/python-example.ts';
import { debianPythonImage } from './support/any-images.ts';
import {
  type Any,
  apply,
  berth,
  ended,
  get,
  kubectl,
  makeNamespace,
  remove,
  session,
  turn,
} from './support/cluster.ts';
import { type IndexSettings, startIndex } from './support/package-index.ts';

const SHOUT = { name: 'shout', version: '1.2', files: { 'shout.py': 'def loud(text):\n    return text.upper()\n' } };
const GREETING = {
  name: 'greeting',
  version: '1.0',
  files: { 'greeting/__init__.py': 'from shout import loud\n\ndef hello():\n    print(loud("hello"), end="")\n' },
  requires: ['shout>=1'],
  scripts: { greet: 'greeting:hello' },
};

async function makeClass(t: TestContext, namespace: string, spec: object): Promise<string> {
  const name = `${namespace}-env`;
  const overrides = ['agent.command', 'agent.input', 'agent.result', 'environment'];
  const resources = { limits: { memory: '512Mi' } };
  const metadata = { name };
  await apply({
    apiVersion: 'berth.dev/v1alpha1',
    kind: 'SessionClass',
    metadata,
    spec: { overrides, resources, ...spec },
  });
  t.onTestFinished(() => remove('sessionclass', name));
  return name;
}

const environment = (namespace: string, spec: object) => ({
  ...{ apiVersion: 'berth.dev/v1alpha1', kind: 'Environment', metadata: { name: 'tools', namespace }, spec },
});

describe('an Environment', () => {
  for (const { what, spec } of [
    { what: 'the runner image with Python', spec: { runnerImage: 'Python' } },
    {
      what: 'another image, into which the runner is injected',
      spec: { runner: 'Injected', image: debianPythonImage },
    },
  ]) {
    test(`is built in a pod of ${what} and used in others, with nothing but the index in reach`, async (t) => {
      const namespace = await makeNamespace(t);
      const settings = await startIndex(namespace, [SHOUT, GREETING]);
      const name = await makeClass(t, namespace, { ...spec, ...settings });
      const agent = { command: ['greet'], input: 'Text', result: 'Text' };
      await apply(
        environment(namespace, { class: name, requirements: ['greeting==1.0'] }),
        session(namespace, 'one', { class: name, agent, environment: { name: 'tools' } }),
        turn(namespace, 'one-1', 'one', ''),
      );
      const { status } = await ended(namespace, 'one-1');
      assert.equal(
        status.phase,
        'Succeeded',
        JSON.stringify([status, await get(['environment', 'tools', '-n', namespace])]),
      );
      assert.equal(status.output, 'HELLO');
      const built = await get(['environment', 'tools', '-n', namespace]);
      const packages = built.status.packages.map(({ name, version }: Any) => `${name} ${version}`);
      assert.deepEqual(packages, ['greeting 1.0', 'shout 1.2']);
      const { items } = await get(['sessions', '-n', namespace]);
      assert.deepEqual(items.map(({ spec }: Any) => spec.build).filter(Boolean), ['Environment']);
    });
  }
});

/** Gives the class `python` these settings while the test runs. */
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
