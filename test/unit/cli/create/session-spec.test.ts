import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { Cli } from '../../../../cli/cli.ts';
import type { Cluster } from '../../../../cli/cluster/cluster.ts';
import { sessionSpec } from '../../../../cli/create/session-spec.ts';
import type { SessionClassSpec } from '../../../../core/resources/sessionclass.ts';

/** The spec of `berth run --with . -- python3 agent.py` in a cluster whose default class lets sessions set this. */
function specWith(overrides: SessionClassSpec['overrides'], embedded = false) {
  const api = { get: async () => ({ spec: { overrides } }) };
  const cluster = { api, embedded: async () => embedded } as unknown as Cluster;
  const cli = { cwd: '/home/ann/project', env: { PATH: '/usr/bin:/bin' } } as unknown as Cli;
  const flags = { class: 'default', with: ['.'] };
  return sessionSpec('run-1', ['sh', 'agent.sh'], flags, { turns: 'One' }, cluster, cli);
}

describe('--with', () => {
  test('names the session’s own ConfigMap, and leaves the working directory to the files', async () => {
    const { agent } = (await specWith(['agent.command', 'agent.args', 'agent.files', 'agent.workingDir'])).spec;
    assert.deepEqual(agent, {
      command: ['sh'],
      args: ['agent.sh'],
      files: [{ configMap: 'run-1-files', archive: 'files.tar.gz' }],
    });
  });

  test('is refused by a class of an earlier release, whose overrides have no agent.files, with what to do', async () => {
    await assert.rejects(specWith(['agent.command', 'agent.args']), {
      message:
        '--with sets spec.agent.files: the class does not allow sessions to set it; leave it out, or have "agent.files" added to the class\'s spec.overrides (class "default")',
    });
  });
});
