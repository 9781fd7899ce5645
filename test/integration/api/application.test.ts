import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'vitest';
import { isAlreadyExists } from '../../../core/kube/errors.ts';
import { configMaps } from '../../../core/kube/resources.ts';
import { sessionclasses } from '../../../core/resources/kinds.ts';
import { LABEL_AGENT_FILES } from '../../../core/resources/names.ts';
import { freePort } from '../../../local/ports.ts';
import { eventually } from '../../support/eventually.ts';
import { shownFiles } from '../../support/pages.ts';
import { ApiCluster } from './support.ts';

/** An agent that says that it has begun, and answers once a file is there. */
const agent = (file: string) => `import json, os, sys, time
n = json.loads(sys.stdin.readline())["input"]["n"]
print("begun", flush=True)
while not os.path.exists(${JSON.stringify(file)}):
    time.sleep(0.02)
answer = {"status": "success", "output": {"square": n ** 2}}
print(os.environ["BERTH_RESULT_START_MARKER"], json.dumps(answer), os.environ["BERTH_RESULT_END_MARKER"])
`;

test('turns.ts of docs/applications.md goes on where it was while the API is killed and started again', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-application-'));
  const api = await ApiCluster.start();
  t.onTestFinished(async () => {
    await api.close();
    rmSync(folder, { recursive: true });
  });
  const script = shownFiles('docs/applications.md').get('turns.ts');
  assert.ok(script, 'the page shows turns.ts');
  writeFileSync(join(folder, 'turns.ts'), script);
  api.cluster.startController();
  const { client } = api.cluster;
  const python = { metadata: { name: 'python' }, spec: { overrides: ['agent.command', 'agent.files'] } };
  await client.create(sessionclasses, python as never).catch((error) => assert.ok(isAlreadyExists(error), error));
  const metadata = { name: 'square', namespace: 'default', labels: { [LABEL_AGENT_FILES]: 'true' } };
  await client.create(configMaps, { metadata, data: { 'agent.py': agent(join(folder, 'go')) } } as never);

  const verbs = ['create', 'get', 'list', 'patch', 'delete'];
  const { token } = await api.user([{ verbs, resources: ['sessions', 'turns'] }]);
  const env = { BERTH_API_PORT: String(await freePort()) };
  const first = await api.startProgram(env);
  const follower = spawn(process.execPath, ['turns.ts'], {
    cwd: folder,
    env: { PATH: process.env.PATH, API: `http://${first.host}`, TOKEN: token },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.onTestFinished(() => void follower.kill('SIGKILL'));
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    follower[name].setEncoding('utf8').on('data', (piece: string) => {
      said[name] += piece;
    });
  const says = (name: 'stdout' | 'stderr', text: RegExp) =>
    eventually(
      () => {
        assert.equal(follower.exitCode, null, said.stderr);
        return text.test(said[name]);
      },
      { what: `turns.ts says ${text}` },
    );

  await says('stdout', /^log: begun$/m);
  first.child.kill('SIGKILL');
  await first.closed;
  await says('stderr', /the API does not answer/);
  const second = await api.startProgram(env);
  t.onTestFinished(() => void second.child.kill('SIGKILL'));
  writeFileSync(join(folder, 'go'), '');
  await eventually(() => follower.exitCode !== null, { what: 'turns.ts ends' });
  assert.equal(follower.exitCode, 0, said.stderr);
  assert.match(said.stdout, /^Succeeded\n\{"square":16\}\n$/m);
  assert.equal(said.stdout.match(/^log: begun$/gm)?.length, 1, 'a line that was read is not told again');
});
