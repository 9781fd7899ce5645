import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'vitest';
import { debianPythonImage } from '../support/any-images.ts';
import { type Any, apply, ended, get, makeNamespace, remove, session, turn } from '../support/cluster.ts';
import { startIndex } from '../support/package-index.ts';

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
