import assert from 'node:assert/strict';
import { join } from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import type { Keys, KeyUse } from '../../../cli/keys/keys.ts';
import { secrets } from '../../../core/kube/resources.ts';
import { type ControllerProcess, Installation } from '../../support/installation.ts';
import { Caller } from './support.ts';

const SECRET = { namespace: 'berth-system', name: 'berth-master-key' };
const agent = { command: ['sh', '-c', 'cat >"$BERTH_STATE_DIR/note"; cat "$BERTH_STATE_DIR/note"'] };

let cluster: Installation;
let caller: Caller;
let controller: ControllerProcess;
beforeAll(async () => {
  cluster = await Installation.start();
  controller = cluster.startController();
  caller = new Caller(join(import.meta.dirname, '..', '..', '..'), { KUBECONFIG: cluster.kubeconfig });
});
afterAll(async () => {
  caller?.remove();
  await cluster?.stop();
});

async function keys(): Promise<Keys> {
  const [found, ...others] = JSON.parse(await caller.ok('keys', '-o', 'json')).installations;
  assert.deepEqual(others, []);
  return found;
}
const short = ({ id, current, states, pods, mayGo }: KeyUse) => ({ id, current, states, pods: pods.length, mayGo });

/** The current key last. */
const sorted = ({ keys }: Keys) => keys.map(short).sort((a, b) => Number(a.current) - Number(b.current));

/** Creates the Secret anew: the embedded cluster keeps no time of other changes. */
async function change(data: Record<string, string>): Promise<void> {
  const { type, data: before } = await cluster.client.get(secrets, SECRET);
  await cluster.client.delete(secrets, SECRET);
  const secret = { apiVersion: 'v1', kind: 'Secret', type, metadata: SECRET, data: { ...before, ...data } };
  await cluster.client.create(secrets, secret as never);
}

async function restart(): Promise<void> {
  await controller.kill('SIGTERM');
  controller = cluster.startController();
}

const suspended = (name: string) => cluster.until(name, 'suspended', ({ status }) => status?.phase === 'Suspended');

test('berth keys says which master keys are needed by what, and when an old one may go', async () => {
  await cluster.create('notes', { agent: { ...agent, input: 'Text', result: 'Text' } as never });
  await cluster.turn('notes', 'notes-1', 'one');
  assert.equal((await cluster.ended('notes-1')).status?.phase, 'Succeeded');
  await cluster.until('notes', 'counted', ({ status }) => status?.state !== undefined);
  const [first, ...none] = (await keys()).keys;
  assert.ok(first);
  const { id: old } = first;
  assert.deepEqual(none, []);
  assert.deepEqual(short(first), { id: old, current: true, states: ['default/notes'], pods: 1, mayGo: false });

  await change({ fresh: Buffer.alloc(32, 7).toString('base64'), current: Buffer.from('fresh').toString('base64') });
  assert.match((await keys()).notes.join(), /was changed after the controller began to lead.* restart it/);
  await restart();
  await cluster.patch('notes', { suspendRequest: 'a' });
  await suspended('notes');
  const rotated = await keys();
  assert.deepEqual(rotated.notes, []);
  assert.deepEqual(sorted(rotated), [
    { id: old, current: false, states: ['default/notes'], pods: 0, mayGo: false },
    { id: 'fresh', current: true, states: [], pods: 0, mayGo: false },
  ]);
  assert.match(await caller.ok('keys'), new RegExp(`^${old} .* no: states of default/notes$`, 'm'));

  await cluster.turn('notes', 'notes-2', 'one');
  assert.equal((await cluster.ended('notes-2')).status?.phase, 'Succeeded');
  await cluster.until('notes', 'sealed anew', ({ status }) => status?.state?.keyId === 'fresh');
  assert.deepEqual(sorted(await keys()), [
    { id: old, current: false, states: [], pods: 0, mayGo: true },
    { id: 'fresh', current: true, states: ['default/notes'], pods: 1, mayGo: false },
  ]);
  assert.match(await caller.ok('keys'), new RegExp(`^${old} .* yes: nothing needs it$`, 'm'));
});
