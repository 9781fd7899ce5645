import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { test } from 'vitest';
import { sessionclasses } from '../../../core/resources/kinds.ts';
import { OVERRIDABLE } from '../../../core/resources/overridable.ts';
import { generators, noGenerators } from '../../support/generators.ts';
import { skipIf } from '../../support/requires.ts';
import { ApiCluster } from './support.ts';

const CONFIG = join(import.meta.dirname, '../../generated-clients/schemathesis.toml');
const RESOURCES = ['sessions', 'turns', 'approvals', 'sessions/exec', 'sessions/files', 'sessions/ports'];
const SESSIONS = '/v1/namespaces/default/sessions';

test(
  'schemathesis finds no request that the server answers in another way than the OpenAPI document says',
  skipIf(noGenerators),
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-schemathesis-'));
    const api = await ApiCluster.start();
    t.onTestFinished(async () => {
      await api.close();
      rmSync(folder, { recursive: true });
    });
    const controller = api.cluster.startController();
    const command = ['sh', '-c', 'echo said >&2; echo kept > "$BERTH_OUTPUT_DIR/file.txt"; cat'];
    const agent = { command, input: 'Text', result: 'Text' };
    await api.cluster.client.patch(sessionclasses, { name: 'default' }, { spec: { agent, overrides: OVERRIDABLE } });
    const { token } = await api.user([{ verbs: ['*'], resources: RESOURCES }]);
    const made = async (path: string, body: object) => {
      const answer = await api.call('POST', path, { token, body });
      assert.equal(answer.status, 201, answer.text);
      return answer.body;
    };
    for (const name of ['known', 'held', 'doomed']) await made(SESSIONS, { metadata: { name } });
    const turn = { metadata: { name: 'known-turn' }, spec: { input: 'hello' } };
    await made(`${SESSIONS}/known/turns`, turn);
    await api.cluster.ended('known-turn');
    const { id } = await made(`${SESSIONS}/known/commands`, { command: ['sleep', '1000'] });
    // Without a controller nothing is run of what schemathesis makes up.
    await controller.kill('SIGKILL');

    const st = join(await generators(), 'venv/bin/st');
    const args = ['--config-file', CONFIG, 'run', `${api.url}/openapi.json`];
    const env = { PATH: process.env.PATH, TOKEN: token, COMMAND: id };
    const run = promisify(execFile)(st, args, { cwd: folder, env, maxBuffer: 64 * 1024 * 1024 });
    const report: { code?: number; stdout: string } = await run.catch((error) => error);
    assert.equal(report.code ?? 0, 0, report.stdout);
  },
);
