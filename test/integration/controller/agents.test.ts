import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { secrets } from '../../../core/kube/resources.ts';
import { eventually } from '../../support/eventually.ts';
import { ONE_LEADER } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';
import { serverScript } from '../../support/servers.ts';

describe('agents on the embedded cluster', () => {
  const cluster = installed(ONE_LEADER, { controller: true });

  test('a server takes turn after turn, and a new one goes on with its state after a suspension', async () => {
    const handle = `
const file = process.env.BERTH_STATE_DIR + '/n';
const n = (fs.existsSync(file) ? Number(fs.readFileSync(file)) : 0) + 1;
fs.writeFileSync(file, String(n));
respond(id, { n, served });`;
    const agent = { driver: 'Server' as const, command: [process.execPath, '-e'], args: [serverScript(handle)] };
    await cluster.create('server', { agent });
    for (const [i, expected] of [
      { n: 1, served: 1 },
      { n: 2, served: 2 },
    ].entries()) {
      await cluster.turn('server', `server-${i}`, null);
      assert.deepEqual((await cluster.ended(`server-${i}`)).status?.output, expected);
    }
    await cluster.patch('server', { suspendRequest: 'now' });
    await cluster.until('server', 'suspended', (session) => session.status?.phase === 'Suspended');
    await cluster.turn('server', 'server-2', null);
    assert.deepEqual((await cluster.ended('server-2')).status?.output, { n: 3, served: 1 });
  });

  test('a file of a Secret is in the pod for its user alone, gone with it, and only of one that the class allows', async () => {
    const object = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'cloud', namespace: 'default' } };
    await cluster.client.create(secrets, { ...object, data: { key: Buffer.from('pass-word-1\n').toString('base64') } });
    const agent = {
      command: ['/bin/sh', '-c'],
      args: ['cd $BERTH_SECRETS_DIR && pwd && find . -type f -printf "%P %m %s\\n" && cat deep/key.txt'],
      result: 'Text' as const,
      secretFiles: [{ path: 'deep/key.txt', secretKeyRef: { name: 'cloud', key: 'key' } }],
    };
    await cluster.create('file', { agent });
    await cluster.turn('file', 'file-1', null);
    const { status } = await cluster.ended('file-1');
    const [folder = '', ...lines] = String(status?.output).split('\n');
    assert.deepEqual(lines, ['deep/key.txt 400 12', '[REDACTED]', ''], JSON.stringify(status));
    assert.ok(existsSync(join(folder, 'deep/key.txt')));
    await cluster.delete('file');
    await eventually(() => !existsSync(folder), { what: 'the folder is gone with the pod' });

    await cluster.createClass('strict', {
      overrides: ['agent.secretFiles'],
      agent: { command: ['true'] },
      secrets: ['other'],
    });
    const { secretFiles } = agent;
    await cluster.create('refused', { class: 'strict', agent: { secretFiles } });
    const refused = await cluster.until('refused', 'refused', (session) =>
      Boolean(session.status?.conditions?.some(({ reason }) => reason === 'NotAllowed')),
    );
    const message = refused.status?.conditions?.find(({ reason }) => reason === 'NotAllowed')?.message ?? '';
    assert.match(
      message,
      /^spec\.agent\.secretFiles\[0\]\.secretKeyRef\.name: the class does not allow Secret "cloud"/,
    );
  });

  test('lines of JSON become output and usage, and resumeArgs go on after a suspension', async () => {
    const script = `
const fs = require('node:fs');
const [how] = process.argv.slice(1);
fs.writeFileSync(process.env.BERTH_STATE_DIR + '/talk.jsonl', '{}');
console.log(JSON.stringify({ type: 'progress' }));
console.log(JSON.stringify({ type: 'result', text: how, tokens: 5 }));`;
    const agent = {
      command: [process.execPath, '-e', script, '--'],
      args: ['new'],
      resumeArgs: ['resume'],
      resumeWhen: '*.jsonl',
      result: 'JsonLines' as const,
      jsonLines: { resultWhen: { '/type': 'result' }, output: '/text', usage: { tokens: '/tokens' } },
    };
    await cluster.create('lines', { agent });
    await cluster.turn('lines', 'lines-1', null);
    const { status } = await cluster.ended('lines-1');
    assert.deepEqual([status?.output, status?.metadata], ['new', { usage: { tokens: 5 } }]);
    await cluster.patch('lines', { suspendRequest: 'now' });
    await cluster.until('lines', 'suspended', (session) => session.status?.phase === 'Suspended');
    await cluster.turn('lines', 'lines-2', null);
    assert.equal((await cluster.ended('lines-2')).status?.output, 'resume');
  });

  test('tools of a class are called, listed and refused as the class declares them', async () => {
    const parameters = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
    const double = { name: 'double', description: 'Twice', parameters, command: ['expr', '2', '*', '$(INPUT.n)'] };
    const agent = { driver: 'Tools' as const, input: 'Args' as const, result: 'Json' as const, tools: [double] };
    await cluster.createClass('calculator', { agent });
    await cluster.create('tools', { class: 'calculator' });
    const { duration_ms: _, ...called } = await outputOf('tools', { tool: 'double', args: { n: 21 }, call_id: 'x' });
    assert.deepEqual(called, { call_id: 'x', tool: 'double', status: 'success', result: 42 });
    const refused = await outputOf('tools', { tool: 'double', args: { n: 'many' } });
    assert.equal((refused.error as { code: string }).code, 'InvalidArguments');
    assert.equal(((await outputOf('tools', { method: 'list_tools' })).tools as object[]).length, 1);
  });

  test('a tool whose schema is none keeps its session from starting, by the tool’s name', async () => {
    const tools = [{ name: 'odd', parameters: { type: 'string' }, command: ['true'] }];
    await cluster.create('odd', { agent: { driver: 'Tools', tools } });
    const session = await cluster.until('odd', 'refused', ({ status }) =>
      Boolean(status?.conditions?.some(({ reason }) => reason === 'InvalidSpec')),
    );
    const message = session.status?.conditions?.find(({ reason }) => reason === 'InvalidSpec')?.message ?? '';
    assert.match(message, /^spec\.agent\.tools: odd: parameters: must be a JSON Schema with type: object/);
  });

  test('a tool needs a command or a method, and not both', async () => {
    const both = { driver: 'Tools' as const, tools: [{ name: 'x', command: ['true'], method: 'm' }] };
    await assert.rejects(cluster.create('both', { agent: both }), /set exactly one of command and method/);
  });

  let number = 0;
  async function outputOf(session: string, input: unknown): Promise<Record<string, unknown>> {
    const name = `${session}-${++number}`;
    await cluster.turn(session, name, input);
    const { status } = await cluster.ended(name);
    assert.equal(status?.phase, 'Succeeded', JSON.stringify(status));
    return status?.output as Record<string, unknown>;
  }
});
