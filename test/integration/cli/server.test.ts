import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { pythonAgent } from '../../support/installation.ts';
import { ApiCluster } from '../api/support.ts';
import { OnTerminal } from './on-terminal.ts';
import { Caller, type Ended } from './support.ts';

const CHECKOUT = join(import.meta.dirname, '..', '..', '..');

/** What differs from call to call: names with a random suffix, versions, identities and times. */
const VARYING: [RegExp, string][] = [
  [/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, 'UID'],
  [/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME'],
  [/\b\d\d:\d\d:\d\d\b/g, 'CLOCK'],
  [/\b(\d+m)?\d+(\.\d+)?(ms|s)\b/g, 'AGE'],
  [/\b\d+\.\d+\.\d+\.\d+\b/g, 'PLACE'],
  [/ +/g, ' '],
];
const alike = (text: string) => VARYING.reduce((all, [what, word]) => all.replaceAll(what, word), text);

describe('the command line through the HTTP API', () => {
  /** Prints, leaves a file, and asks if its input says so. */
  const agent = pythonAgent(`
sys.path.insert(0, '${join(CHECKOUT, 'clients', 'python')}')
import berth_agent
said = request['input']
if said == 'sleep': time.sleep(600)
print('got', said, flush=True)
if said == 'fail': raise SystemExit('no')
if said == 'ask': said = berth_agent.approve('May I?', None)['decision']
os.makedirs('report', exist_ok=True) if False else None
with open(os.path.join(os.environ['BERTH_OUTPUT_DIR'], 'report.txt'), 'w') as file: file.write('x' * 100000)
answer('y' * 300000 if said == 'large' else {'said': said, 'n': 12345678901234567890})
`);
  let api: ApiCluster;
  let caller: Caller;
  /** Flags of the HTTP API. */
  let server: string[];
  let tokenFile: string;
  /** Calls through the kubeconfig alone, and through the server alone. */
  const direct = (...words: string[]): Promise<Ended> => caller.berth(words, { env: { KUBECONFIG: api.cluster.kubeconfig } });
  const through = (...words: string[]): Promise<Ended> => caller.berth([...words, ...server]);
  const both = async (...words: string[]) => {
    const [one, other] = await Promise.all([direct(...words), through(...words)]);
    assert.equal(other.code, one.code, `${words.join(' ')}: ${one.stderr} / ${other.stderr}`);
    return [one, other] as const;
  };
  /** Both calls print the same, but for what varies. */
  const same = async (...words: string[]): Promise<Ended> => {
    const [one, other] = await both(...words);
    assert.equal(alike(other.stdout), alike(one.stdout), words.join(' '));
    assert.equal(alike(other.stderr), alike(one.stderr), words.join(' '));
    return other;
  };

  beforeAll(async () => {
    api = await ApiCluster.start();
    api.cluster.startController();
    caller = new Caller(CHECKOUT, { KUBECONFIG: join('/nonexistent', 'kubeconfig') });
    const { token } = await api.user([{ verbs: ['*'], resources: ['sessions', 'turns', 'blobs', 'approvals'] }]);
    tokenFile = join(caller.root, 'token');
    writeFileSync(tokenFile, `${token}\n`);
    server = ['--server', api.url, '--token-file', tokenFile];
    await api.cluster.create('notes', { agent });
  });
  afterAll(async () => {
    caller.remove();
    await api.close();
  });

  test('a turn gives the same output, exit code and messages, also a large output and a failure', async () => {
    assert.equal((await same('turn', 'notes', 'hello')).stdout, '{"said":"hello","n":12345678901234567890}\n');
    assert.equal((await same('turn', 'notes', 'large')).stdout.length, 300_001);
    const [, failed] = await both('turn', 'notes', 'fail');
    assert.equal(failed.code, 1);
    assert.match(failed.stderr, /Failed: .*\nits log: berth logs notes --turn/);
    const late = await both('turn', 'notes', 'sleep', '--timeout', '1s');
    assert.equal(late[1].code, 124);
  });

  test('run creates a session with its turn, prints the output and deletes it with --rm', async () => {
    const words = ['run', '--text', 'ü', '--input-as', 'text', '--result', 'text', '--', '/bin/cat'];
    const { code, stdout, stderr } = await through('--name', 'made', ...words.slice(1), ...[]).catch(() => ({}) as Ended);
    assert.notEqual(code, undefined, `${stdout}${stderr}`);
    const ran = await caller.berth([...server, 'run', '--name', 'made', ...words.slice(1)]);
    assert.deepEqual([ran.code, ran.stdout, ran.stderr], [0, 'ü', 'session made\n'].map((each, i) => (i === 1 ? 'ü\n' : each)));
    const removed = await caller.berth([...server, 'run', '--rm', '--name', 'brief', ...words.slice(1)]);
    assert.equal(removed.code, 0);
    assert.equal((await through('get', 'brief')).code, 2);
    const detached = await caller.berth([...server, 'run', '--detach', '--name', 'apart', ...words.slice(1)]);
    assert.equal(detached.stdout, 'session.berth.dev/apart\nturn.berth.dev/apart\n');
    const again = await caller.berth([...server, 'run', '--name', 'made', ...words.slice(1)]);
    assert.equal(again.code, 2);
    assert.match(again.stderr, /already exists/);
  });
});
