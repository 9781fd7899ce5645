import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'vitest';
import { parse } from 'yaml';
import {
  apply,
  checkout,
  ended,
  get,
  kubectl,
  makeNamespace,
  remove,
  session,
  turn,
  until,
} from './support/cluster.ts';
import { codingAgentImage, loadCodingAgent } from './support/coding-agents.ts';

/** The class in examples/ as it is, with an image of the test's own where that image is, and the Secret that it names. */
async function makeClass(
  t: TestContext,
  namespace: string,
  example: string,
  own: { image: string; nodeSelector: object },
): Promise<string> {
  const object = parse(await readFile(join(checkout, 'examples', example), 'utf8'));
  const name = `${object.metadata.name}-${namespace}`;
  await apply({ ...object, metadata: { name }, spec: { ...object.spec, ...own } });
  t.onTestFinished(() => remove('sessionclass', name));
  for (const secret of object.spec.secrets) {
    const stringData = { 'api-key': 'sk-stand-in-0123456789' };
    await apply({ apiVersion: 'v1', kind: 'Secret', metadata: { namespace, name: secret }, stringData });
  }
  return name;
}

for (const { what, agent, example } of [
  { what: 'Claude Code', agent: 'claude', example: 'claude-code.yaml' },
  { what: 'Codex CLI', agent: 'codex', example: 'codex.yaml' },
] as const) {
  test(`${what} in a pod goes on with its conversation after a suspension, by the class in examples/`, async (t) => {
    const began = performance.now();
    const node = await loadCodingAgent(agent);
    await t.annotate(`its image took ${((performance.now() - began) / 1000).toFixed(1)} s`);
    const namespace = await makeNamespace(t);
    const nodeSelector = { 'kubernetes.io/hostname': node };
    const name = await makeClass(t, namespace, example, { image: codingAgentImage(agent), nodeSelector });
    await apply(session(namespace, 'talk', { class: name, agent: undefined, suspendRequest: 'one' }));
    await apply(turn(namespace, 'talk-1', 'talk', 'QUESTION one'));
    const one = (await ended(namespace, 'talk-1')).status;
    assert.equal(one.output, 'ANSWER to 1: QUESTION one', JSON.stringify(one));

    const suspend = ['--type=merge', '-p', '{"spec":{"suspendRequest":"two"}}'];
    await kubectl(['patch', 'session', 'talk', '-n', namespace, ...suspend]);
    await until(namespace, 'session', 'talk', ({ status }) => status.phase === 'Suspended');
    assert.deepEqual((await get(['pods', '-n', namespace])).items, []);

    await apply(turn(namespace, 'talk-2', 'talk', 'QUESTION two'));
    const two = (await ended(namespace, 'talk-2')).status;
    assert.equal(two.output, 'ANSWER to 2: QUESTION two', JSON.stringify(two));
    assert.equal(two.incarnation, 2);
    const given = JSON.stringify(['QUESTION one', 'ANSWER to 1: QUESTION one', 'QUESTION two']);
    assert.ok(two.log.inline.includes(`the model was given: ${given}`), two.log.inline);
  });
}
