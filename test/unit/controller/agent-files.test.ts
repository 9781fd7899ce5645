import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { decide } from '../../../controller/decide/decide.ts';
import { outdated } from '../../../controller/status/outdated.ts';
import type { World } from '../../../controller/world/world.ts';
import type { Agent } from '../../../core/resources/agent.ts';
import { aClass, aPod, aSession, aTurn, aWorld, does, RUNNING_STATUS, reasonOf } from '../../support/world.ts';

const allowing = (agent: Agent = {}) => aClass({ overrides: ['agent.command', 'agent.files'], agent });
const agent: Agent = { command: ['agent'], files: [{ configMap: 'mine' }] };

describe('a session whose agent has files', () => {
  const world = (change: Partial<World> = {}) => ({
    session: aSession({ spec: { agent } }),
    class: allowing(),
    turns: [aTurn()],
    ...change,
  });

  test('waits without a slot until their ConfigMap is there, and says which one is missing', () => {
    const { actions, status } = decide(aWorld(world()));
    assert.ok(!actions.some((action) => action.do === 'OwnIncarnation'));
    assert.equal(reasonOf(status, 'Ready'), 'AgentFilesMissing');
    const message = status.conditions?.find(({ type }) => type === 'Ready')?.message ?? '';
    assert.match(message, /no ConfigMap "mine" with the label berth\.dev\/agent-files/);
    assert.equal(status.queue, undefined);
  });

  test('starts once it is there', () => {
    assert.ok(does(world({ agentFiles: new Map([['mine', 'd']]) })).includes('OwnIncarnation'));
  });

  test('waits for those of its class too', () => {
    const ofClass = allowing({ files: [{ configMap: 'shared' }] });
    const missing = decide(aWorld(world({ class: ofClass, agentFiles: new Map([['mine', 'd']]) })));
    assert.equal(reasonOf(missing.status, 'Ready'), 'AgentFilesMissing');
  });

  test('needs no ConfigMap for files that are given inline', () => {
    const session = aSession({ spec: { agent: { command: ['agent'], files: [{ inline: { 'a.py': '' } }] } } });
    assert.ok(does(world({ session })).includes('OwnIncarnation'));
  });

  for (const [path, what] of [
    ['../a', 'leads out'],
    ['/a', 'is absolute'],
    ['a//b', 'has an empty part'],
    ['', 'is empty'],
  ] as const) {
    test(`is refused a path that ${what}`, () => {
      const session = aSession({ spec: { agent: { command: ['agent'], files: [{ inline: { [path]: '' } }] } } });
      const { status } = decide(aWorld(world({ session })));
      assert.equal(reasonOf(status, 'Ready'), 'InvalidSpec');
    });
  }

  test('is refused more than 16 KiB inline, over all sources', () => {
    const half = { inline: { a: 'x'.repeat(9000) } };
    const session = aSession({ spec: { agent: { command: ['agent'], files: [half, half] } } });
    const { status } = decide(aWorld(world({ session })));
    assert.match(status.conditions?.find(({ type }) => type === 'Ready')?.message ?? '', /18002 bytes; at most 16384/);
  });
});

describe('a pod with files of a ConfigMap', () => {
  const status = { ...RUNNING_STATUS, agentFiles: [{ configMap: 'mine', digest: 'd1' }] };
  const shown = (digests: [string, string][]) =>
    outdated(aWorld({ session: aSession({ status }), pod: aPod(), agentFiles: new Map(digests) }), status);

  test('is outdated once the ConfigMap is changed or deleted, and the condition names it', () => {
    assert.equal(shown([['mine', 'd2']])?.reason, 'AgentFilesChanged');
    assert.match(shown([['mine', 'd2']])?.message ?? '', /ConfigMap "mine" of agent\.files was changed/);
    assert.match(shown([])?.message ?? '', /ConfigMap "mine" of agent\.files is gone/);
  });

  test('is not outdated while the ConfigMap is as it was', () => {
    assert.equal(shown([['mine', 'd1']]), undefined);
  });
});
