import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import type { Cli } from '../../../../cli/cli.ts';
import type { Cluster } from '../../../../cli/cluster/cluster.ts';
import { tellMachinePaths, tellOfRealClusters } from '../../../../cli/create/embedded-notes.ts';
import type { Agent } from '../../../../core/resources/agent.ts';
import type { Network } from '../../../../core/resources/network.ts';

const homes: string[] = [];
afterAll(() => {
  for (const home of homes) rmSync(home, { recursive: true });
});

/** Somebody with a new folder for the embedded cluster, who remembers what was said. */
function caller() {
  const home = mkdtempSync(join(tmpdir(), 'berth-notes-'));
  homes.push(home);
  const said: string[] = [];
  const cli = { env: { BERTH_HOME: home }, say: (line: string) => void said.push(line) } as unknown as Cli;
  return { cli, said };
}

const aCluster = ({ embedded = true, mode }: { embedded?: boolean; mode?: Network['mode'] } = {}) =>
  ({
    embedded: async () => embedded,
    api: { get: async () => ({ spec: mode ? { sandbox: { network: { mode } } } : {} }) },
  }) as unknown as Cluster;

const OWN: Agent = { command: ['/usr/bin/python3'], args: ['agent.py'], workingDir: '/home/ann' };
const SENT: Agent = { command: ['python3'], files: [{ configMap: 'notes-files', archive: 'files.tar.gz' }] };
const spec = (agent?: Agent) => ({ class: 'default', ...(agent ? { agent } : {}) });

describe('the note on real clusters', () => {
  test('says what the session would lack there: files of this machine, and what its class does not let it reach', async () => {
    const cases: [Agent | undefined, Network['mode'] | undefined, RegExp[]][] = [
      [
        OWN,
        undefined,
        [/lacks the programs and files of this machine \(--with/, /, and the network, of which class "default"/],
      ],
      [SENT, 'None', [/lacks the network, of which class "default" allows nothing/]],
      [OWN, 'Open', [/lacks the programs and files of this machine [^,]*\.$/]],
      [undefined, 'AllowList', [/lacks the addresses that class "default" does not list/]],
      [SENT, 'Open', []],
    ];
    for (const [agent, mode, expected] of cases) {
      const { cli, said } = caller();
      await tellOfRealClusters(spec(agent), aCluster(mode ? { mode } : {}), cli);
      for (const part of expected) assert.match(said[0] ?? '', part);
      assert.equal(said.length, expected.length === 0 ? 0 : 2, said.join());
    }
  });

  test('comes once for each folder of an embedded cluster, and on no other cluster', async () => {
    const { cli, said } = caller();
    await tellOfRealClusters(spec(OWN), aCluster({ embedded: false }), cli);
    assert.deepEqual(said, []);
    await tellOfRealClusters(spec(OWN), aCluster(), cli);
    await tellOfRealClusters(spec(OWN), aCluster(), cli);
    assert.equal(said.length, 2);
  });

  test('is left out where there is no such folder, which could keep that it was said', async () => {
    const { cli, said } = caller();
    rmSync(homes.pop() as string, { recursive: true });
    await tellOfRealClusters(spec(OWN), aCluster(), cli);
    assert.deepEqual(said, []);
  });
});

test('a manifest with paths of this machine is printed with a note that names the fields', async () => {
  const { cli, said } = caller();
  await tellMachinePaths(spec(OWN), aCluster({ embedded: false }), cli);
  await tellMachinePaths(spec(SENT), aCluster(), cli);
  assert.deepEqual(said, []);
  await tellMachinePaths(spec(OWN), aCluster(), cli);
  await tellMachinePaths(spec({ command: ['/bin/cat'] }), aCluster(), cli);
  assert.match(said[0] ?? '', /^note: agent\.command and agent\.workingDir have paths of this machine/);
  assert.match(said[1] ?? '', /^note: agent\.command has a path of this machine.*--context, or remove it\.$/);
});
