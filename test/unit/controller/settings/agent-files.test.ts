import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { decide } from '../../../../controller/decide/decide.ts';
import type { World } from '../../../../controller/observed/world.ts';
import type { Effective } from '../../../../controller/settings/effective.ts';
import { outdated } from '../../../../controller/status/outdated.ts';
import { PROTOCOL_VERSION } from '../../../../core/frames/messages.ts';
import type { Agent } from '../../../../core/resources/agent.ts';
import {
  aClass,
  aLink,
  aPod,
  aSession,
  aTurn,
  aWorld,
  does,
  NOW,
  POD_UID,
  RUNNING_STATUS,
  reasonOf,
  runningTurn,
  type WorldChange,
} from '../../../support/world.ts';

const OVERRIDES = ['agent.command', 'agent.files', 'timeouts'] as const;
const NONE = { runner: 'None', image: 'any:1' } as const;
const allowing = (agent: Agent = {}) => aClass({ overrides: [...OVERRIDES], agent });
const agent: Agent = { command: ['agent'], files: [{ configMap: 'mine' }] };

describe('a session whose agent has files', () => {
  const world = (change: WorldChange = {}) => ({
    session: aSession({ spec: { agent } }),
    class: allowing(),
    turns: [aTurn()],
    ...change,
  });

  test('waits without a slot until their ConfigMap is there, and says which one is missing', () => {
    const { admission, status } = decide(aWorld(world()));
    assert.equal(admission, undefined);
    assert.equal(reasonOf(status, 'Ready'), 'AgentFilesMissing');
    const message = status.conditions?.find(({ type }) => type === 'Ready')?.message ?? '';
    assert.match(message, /no ConfigMap "mine" with the label berth\.dev\/agent-files/);
    assert.equal(status.queue, undefined);
  });

  test('waits while it is not known which ConfigMaps there are, and says which right may be missing', () => {
    const { admission, status } = decide(aWorld(world({ agentFiles: undefined })));
    assert.equal(admission, undefined);
    assert.match(status.conditions?.find(({ type }) => type === 'Ready')?.message ?? '', /controller\.agentFiles/);
  });

  const waiting = { ...world(), session: aSession({ spec: { agent, timeouts: { start: '50s' } } }) };
  const ends = (since: number, filesReadAt = NOW) =>
    decide(
      aWorld({ ...waiting, turns: [aTurn({ age: 300 })], memory: { cannotStartSince: NOW - since, filesReadAt } }),
    ).actions.flatMap((action) => (action.do === 'WriteTurn' && action.status.error ? [action.status.error.code] : []));

  test('ends the turns that wait for it at timeouts.start, with the reason', () => {
    assert.deepEqual(ends(51_000), ['AgentFilesMissing']);
  });

  test('looks for the ConfigMap live before it ends them, as the cache may be behind', () => {
    assert.deepEqual(ends(51_000, NOW - 52_000), []);
    const late = aWorld({ ...waiting, turns: [aTurn({ age: 300 })], memory: { cannotStartSince: NOW - 51_000 } });
    assert.deepEqual(
      decide(late).actions.filter(({ do: what }) => what === 'ReadFiles'),
      [{ do: 'ReadFiles', configMaps: ['mine'] }],
    );
  });

  test('keeps them waiting until then', () => {
    assert.deepEqual(ends(49_000), []);
    const { wakeAt } = decide(
      aWorld({ ...waiting, turns: [aTurn({ age: 300 })], memory: { cannotStartSince: NOW - 49_000 } }),
    );
    assert.equal(wakeAt, NOW + 1000);
  });

  test('starts once it is there', () => {
    assert.ok(does(world({ agentFiles: new Map([['mine', 'd']]) })).includes('Admit'));
  });

  test('waits for those of its class too', () => {
    const ofClass = allowing({ files: [{ configMap: 'shared' }] });
    const missing = decide(aWorld(world({ class: ofClass, agentFiles: new Map([['mine', 'd']]) })));
    assert.equal(reasonOf(missing.status, 'Ready'), 'AgentFilesMissing');
  });

  test('needs no ConfigMap for files that are given inline', () => {
    const session = aSession({ spec: { agent: { command: ['agent'], files: [{ inline: { 'a.py': '' } }] } } });
    assert.ok(does(world({ session })).includes('Admit'));
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

  test('is refused them where the class has no runner, which would unpack them', () => {
    for (const files of [[{ configMap: 'mine' }], [{ inline: { 'a.py': '' } }]]) {
      const session = aSession({ spec: { agent: { command: ['agent'], files } } });
      const { status } = decide(aWorld(world({ session, class: aClass({ ...NONE, overrides: [...OVERRIDES] }) })));
      assert.equal(reasonOf(status, 'Ready'), 'InvalidSpec');
      const message = status.conditions?.find(({ type }) => type === 'Ready')?.message ?? '';
      assert.match(message, /^spec\.agent\.files: is set, but with the class’s runner None nobody obeys it/);
    }
  });

  test('is refused more than 16 KiB inline, over all sources', () => {
    const half = { inline: { a: 'x'.repeat(9000) } };
    const session = aSession({ spec: { agent: { command: ['agent'], files: [half, half] } } });
    const { status } = decide(aWorld(world({ session })));
    assert.match(status.conditions?.find(({ type }) => type === 'Ready')?.message ?? '', /18002 bytes; at most 16384/);
  });
});

describe('a pod whose runner cannot be given the recorded files', () => {
  const problem = { reason: 'AgentFilesChanged', message: 'changed' } as const;
  const status = { ...RUNNING_STATUS, phase: 'Starting' as const };
  const link = aLink({ phase: 'Unbound', protocol: PROTOCOL_VERSION });
  const world = (podUID: string) => ({
    session: aSession({ spec: { agent }, status }),
    class: allowing(),
    turns: [runningTurn('t')],
    pod: aPod(),
    link,
    memory: { contentsLost: { podUID, problem } },
  });

  test('is deleted and not bound; its turn is queued again once it is gone', () => {
    const { actions } = decide(aWorld(world(POD_UID)));
    assert.deepEqual(
      actions.map((action) => action.do),
      ['DeletePod'],
    );
    const gone = { ...world(POD_UID), pod: undefined, memory: { confirmedGone: { podUID: POD_UID } } };
    const turn = decide(aWorld(gone)).actions.find((action) => action.do === 'WriteTurn');
    assert.equal(turn?.status.phase, 'Queued');
  });

  test('is the pod of that incarnation only', () => {
    assert.ok(does(world('an earlier one')).includes('Bind'));
  });

  test('says so while it goes', () => {
    assert.equal(reasonOf(decide(aWorld(world(POD_UID))).status, 'Ready'), 'AgentFilesChanged');
  });
});

test('a turn whose files cannot be unpacked ends with the runner’s words, and the pod goes', () => {
  const refused = { n: 7, code: 'FilesFailed', message: 'agent.files holds "../x", which is no path in it' } as const;
  const { actions } = decide(
    aWorld({
      session: aSession({ spec: { agent }, status: RUNNING_STATUS }),
      class: allowing(),
      turns: [runningTurn('t')],
      pod: aPod(),
      link: aLink({ refused }),
    }),
  );
  const ended = actions.find((action) => action.do === 'WriteTurn');
  assert.deepEqual([ended?.status.phase, ended?.status.error?.code], ['Failed', 'StartFailed']);
  assert.match(ended?.status.error?.message ?? '', /holds "\.\.\/x", which is no path in it/);
  assert.ok(actions.some((action) => action.do === 'DeletePod'));
});

describe('a pod with files of a ConfigMap', () => {
  const status = { ...RUNNING_STATUS, agentFiles: [{ configMap: 'mine', digest: 'd1' }] };
  const seen = (agentFiles: World['agentFiles']) => ({
    world: aWorld({ session: aSession({ status }), pod: aPod(), agentFiles }),
    settings: {} as Effective,
  });
  const shown = (digests: [string, string][]) => outdated(seen(new Map(digests)), status);

  test('is outdated once the ConfigMap is changed or deleted, and the condition names it', () => {
    assert.equal(shown([['mine', 'd2']])?.reason, 'AgentFilesChanged');
    assert.match(shown([['mine', 'd2']])?.message ?? '', /ConfigMap "mine" of agent\.files was changed/);
    assert.match(shown([])?.message ?? '', /ConfigMap "mine" of agent\.files is gone/);
  });

  test('is not outdated while it is not known which ConfigMaps there are', () => {
    assert.equal(outdated(seen(undefined), status), undefined);
  });

  test('is not outdated while the ConfigMap is as it was', () => {
    assert.equal(shown([['mine', 'd1']]), undefined);
  });
});
