import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { ArtifactReader } from '../../../core/artifacts/stored.ts';
import { blobs, type StoredTurn } from '../../../core/resources/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { ONE_LEADER } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';

const agent = (script: string) => ({ command: ['sh', '-c', script], input: 'Text', result: 'Text' }) as const;

describe('the artifacts of turns', () => {
  const cluster = installed(ONE_LEADER, { controller: true });

  const contentsOf = async ({ metadata, status }: StoredTurn) => {
    const read: [string, string][] = [];
    const reader = new ArtifactReader(cluster.client, 'default');
    for (const artifact of status?.artifacts ?? [])
      read.push([artifact.name, (await reader.read(artifact)).toString('latin1')]);
    assert.ok(read.length > 0, metadata.name);
    return read;
  };
  const storedOf = async (uid: string) => {
    const { items } = await cluster.client.list(blobs, { namespace: 'default' });
    return items.filter(({ spec }) => spec.sessionUID === uid).map(({ spec }) => spec.kind);
  };

  test('are stored with the turn that left them, kept while it is kept and deleted with the session', async () => {
    const script = 'cd "$BERTH_OUTPUT_DIR"; ls; mkdir sub; printf %s "$BERTH_TURN" > sub/name; printf x > b; ln -s / l';
    const { metadata } = await cluster.create('notes', { agent: agent(script) } as never);
    for (const name of ['notes-1', 'notes-2']) await cluster.turn('notes', name, 'x');
    for (const name of ['notes-1', 'notes-2']) {
      const turn = await cluster.ended(name);
      assert.deepEqual([turn.status?.phase, turn.status?.output], ['Succeeded', ''], 'each turn finds an empty folder');
      assert.deepEqual(await contentsOf(turn), [
        ['b', 'x'],
        ['sub/name', name],
      ]);
      assert.deepEqual(turn.status?.artifactsLeftOut, { count: 1, entries: [{ name: 'l', reason: 'Symlink' }] });
    }
    assert.deepEqual(await storedOf(metadata.uid), ['Artifacts', 'Artifacts']);
    await cluster.delete('notes');
    await eventually(async () => (await storedOf(metadata.uid)).length === 0, { what: 'the blobs are gone' });
  });

  test('of several parts are whole, those of a failed turn too', async () => {
    const script = 'cd "$BERTH_OUTPUT_DIR"; head -c 2000000 /dev/urandom > big; sha256sum < big; exit 3';
    await cluster.create('big', { agent: agent(script), input: 'x', turns: 'One' } as never);
    const turn = await cluster.ended('big');
    assert.deepEqual([turn.status?.phase, turn.status?.error?.code], ['Failed', 'AgentFailed']);
    const [[, content = ''] = []] = await contentsOf(turn);
    assert.equal(content.length, 2_000_000);
    assert.equal(turn.status?.output, `${turn.status?.artifacts?.[0]?.digest}  -\n`);
  });

  test('above the limits of the class fail the turn with ArtifactsTooLarge, which keeps its output', async () => {
    const one = agent('head -c "$(cat)" /dev/zero > $BERTH_OUTPUT_DIR/x; echo done');
    await cluster.createClass('narrow', { agent: one, artifacts: { maxBytes: '1Ki', maxFiles: 2 } } as never);
    await cluster.create('narrow', { class: 'narrow' } as never);
    await cluster.turn('narrow', 'fits', '1024');
    await cluster.turn('narrow', 'over', '1025');
    assert.equal((await cluster.ended('fits')).status?.phase, 'Succeeded');
    const { phase, error, output, artifacts } = (await cluster.ended('over')).status ?? {};
    assert.deepEqual([phase, error?.code, output, artifacts], ['Failed', 'ArtifactsTooLarge', 'done\n', undefined]);
    assert.match(error?.message ?? '', /has 1025 bytes; 1024 can be kept \(artifacts\.maxBytes\)/);
  });

  test('have no limits in a class without a runner, and at least one file in others', async () => {
    const none = { runner: 'None', image: 'berth.local/machine', artifacts: { maxFiles: 1 } } as const;
    await assert.rejects(
      cluster.createClass('none', none),
      /spec\.artifacts.*nobody collects artifacts; leave artifacts out/,
    );
    await assert.rejects(cluster.createClass('zero', { artifacts: { maxFiles: 0 } }), /spec\.artifacts\.maxFiles/);
    await assert.rejects(
      cluster.createClass('much', { artifacts: { maxBytes: 'much' } }),
      /must be a Kubernetes quantity|maxBytes/,
    );
  });

  test('of the default limits are 4 MiB and 64 files', async () => {
    const script = 'cd "$BERTH_OUTPUT_DIR"; eval "$(cat)"; echo';
    await cluster.create('default', { agent: agent(script) } as never);
    const inputs: [string, string, string | undefined][] = [
      ['bytes-fit', 'head -c 4194304 /dev/zero > x', undefined],
      ['bytes-over', 'head -c 4194305 /dev/zero > x', 'ArtifactsTooLarge'],
      ['files-fit', 'touch $(seq 64)', undefined],
      ['files-over', 'touch $(seq 65)', 'ArtifactsTooLarge'],
    ];
    for (const [name, input] of inputs) await cluster.turn('default', name, input);
    for (const [name, , code] of inputs) assert.equal((await cluster.ended(name)).status?.error?.code, code, name);
  });
});

describe('artifacts in a store without room for them', () => {
  const cluster = installed({ ...ONE_LEADER, BERTH_STORE_CEILING_BYTES: '100000' }, { controller: true });

  test('fail the turn with ArtifactsNotStored, which keeps its output', async () => {
    const script = 'head -c 200000 /dev/urandom > $BERTH_OUTPUT_DIR/x; echo done';
    await cluster.create('full', { agent: agent(script), input: 'x', turns: 'One' } as never);
    const { phase, error, output, artifacts } = (await cluster.ended('full')).status ?? {};
    assert.deepEqual([phase, error?.code, output, artifacts], ['Failed', 'ArtifactsNotStored', 'done\n', undefined]);
    assert.match(error?.message ?? '', /has no room in the store for/);
  });
});
