import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { ApiCluster } from '../integration/api/support.ts';
import { PYTHON_CLIENT, pythonTools } from '../support/python-tools.ts';
import { compared, type Figure } from './figures.ts';
import { count } from './settings.ts';

const SESSION = 'bench';
const FIRST = 5;
const SAMPLES = count(200, 20);
const RIGHTS = [{ verbs: ['*'], resources: ['sessions', 'turns'] }];
const PROGRAMS = join(import.meta.dirname, 'clients');

type Take = () => Promise<number>;

/** A program that gives the session a turn for each line, and prints the milliseconds. */
function program(file: string, args: readonly string[], env: Record<string, string>): { take: Take; end: () => void } {
  const child = spawn(file, [...args, SESSION], {
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async take() {
      child.stdin.write('\n');
      const { value, done } = await lines.next();
      if (done) throw new Error(`${file} ${args.join(' ')} ended before its turn had`);
      return Number(value);
    },
    end: () => child.stdin.end(),
  };
}

/** One curl for both requests, over one connection. Its own start and end are left out, as those of the other programs are. */
function curl(url: string, token: string): Take {
  let number = 0;
  const turns = `${url}/v1/namespaces/default/sessions/${SESSION}/turns`;
  const common = ['-sS', '--fail', '-o', '/dev/null', '-w', '%{time_total}\n', '-H', `Authorization: Bearer ${token}`];
  return async () => {
    const name = `curl-${++number}`;
    const body = JSON.stringify({ metadata: { name }, spec: { input: 'hello' } });
    const create = [...common, '-H', 'Content-Type: application/json', '-d', body, turns];
    const wait = [...common, `${turns}/${name}?wait=30s`];
    const { stdout } = await promisify(execFile)('curl', [...create, '--next', ...wait]);
    return stdout
      .trim()
      .split('\n')
      .reduce((sum, seconds) => sum + Number(seconds) * 1000, 0);
  };
}

/** A turn of a ready session, from the request to its result, through each client and by curl; one sample of each in turn. */
export async function clients(): Promise<Figure[]> {
  const python = await pythonTools();
  const api = await ApiCluster.start();
  const folder = mkdtempSync(join(tmpdir(), 'berth-bench-'));
  const ends: (() => void)[] = [];
  try {
    api.cluster.startController();
    await api.cluster.create(SESSION, { agent: { command: ['cat'], input: 'Text', result: 'Text' } });
    const { token } = await api.user(RIGHTS);
    const unlimited = { BERTH_API_CALLER_RATE: '1000000', BERTH_API_CALLER_BURST: '1000000' };
    const { host, child } = await api.startProgram(unlimited);
    ends.push(() => child.kill());
    const tokenFile = join(folder, 'token');
    writeFileSync(tokenFile, token);
    const env = { BERTH_SERVER: `http://${host}`, BERTH_TOKEN_FILE: tokenFile };
    const typescript = program(process.execPath, [join(PROGRAMS, 'turns.ts')], env);
    const pythonEnv = { ...env, PYTHONPATH: join(PYTHON_CLIENT, 'src'), PYTHONDONTWRITEBYTECODE: '1' };
    const ofPython = program(python, [join(PROGRAMS, 'turns.py')], pythonEnv);
    ends.push(typescript.end, ofPython.end);
    const takes = { curl: curl(env.BERTH_SERVER, token), typescript: typescript.take, python: ofPython.take };
    const values = { curl: [] as number[], typescript: [] as number[], python: [] as number[] };
    for (let i = 0; i < FIRST + SAMPLES; i++) {
      for (const [name, take] of Object.entries(takes)) {
        const ms = await take();
        if (i >= FIRST) values[name as keyof typeof values].push(ms);
      }
    }
    const beside = { what: 'curl', values: values.curl };
    return [
      compared('a turn of a ready session through the TypeScript client', values.typescript, beside),
      compared('a turn of a ready session through the Python client', values.python, beside),
    ];
  } finally {
    for (const end of ends) end();
    await api.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
