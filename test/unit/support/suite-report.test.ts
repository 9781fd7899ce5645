import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'vitest';

const CHECKOUT = fileURLToPath(new URL('../../..', import.meta.url));
const REPORTER = join(CHECKOUT, 'test/support/suite-report.ts');
const REQUIRES = join(CHECKOUT, 'test/support/requires.ts');
const SHARED_WORKER = join(CHECKOUT, 'test/support/shared-worker.ts');

interface Report {
  passed: number;
  failed: number;
  skipped: number;
  seconds: number;
  skips: string[];
}

/**
 * Run of vitest over test files with these texts: the lines of its report, its exit code and its output. The run is
 * ended from outside once its report has `endsAt` lines.
 */
async function run(texts: Record<string, string>, endsAt?: number, settings: object = {}) {
  // Below the checkout, for the fixtures to find vitest.
  mkdirSync(join(CHECKOUT, 'build'), { recursive: true });
  const folder = mkdtempSync(join(CHECKOUT, 'build/suite-report-'));
  try {
    const config = { test: { pool: 'forks', maxWorkers: 2, include: ['*.test.ts'], ...settings } };
    writeFileSync(join(folder, 'vitest.config.js'), `export default ${JSON.stringify(config)}`);
    for (const [name, text] of Object.entries(texts)) {
      const imports = `import { afterAll, beforeAll, describe, test } from 'vitest';\nimport { skipIf } from '${REQUIRES}';\n`;
      writeFileSync(join(folder, `${name}.test.ts`), imports + text);
    }
    const report = join(folder, 'report.json');
    const lines = (): Report[] => {
      const text = readFileSync(report, 'utf8').split('\n').slice(0, -1);
      return text.map((line) => ({ ...JSON.parse(line), seconds: 0 }));
    };
    const child = spawn(
      process.execPath,
      [
        join(CHECKOUT, 'node_modules/vitest/vitest.mjs'),
        ...['run', '--root', folder, '--configLoader', 'native', '--outputFile', report],
        // The report is written before the line about the same file is printed.
        ...['--reporter', REPORTER, '--reporter', 'default'],
      ],
      { stdio: ['ignore', 'pipe', 'pipe'], cwd: folder },
    );
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
        if (endsAt !== undefined && !child.killed && lines().length >= endsAt) child.kill();
      });
    }
    const [code] = await once(child, 'close');
    return { ...lines().at(-1)!, code, output, lines: lines().length };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('a skipped test and each test of a skipped suite are counted as skipped, each with its reason, and not as failed', async () => {
  const { passed, failed, skipped, skips, code } = await run({
    some: `
describe('suite', skipIf('no root'), () => { test('a', () => {}); test('b', () => {}); });
describe('other', () => {
  test('left out', skipIf('no keeper'), () => {});
  test('gives up', ({ skip }) => skip('no luck'));
  test('without a reason', { skip: true }, () => {});
  test('runs', skipIf(false), () => {});
});`,
  });
  assert.deepEqual([passed, failed, skipped, code], [1, 0, 5, 0]);
  assert.deepEqual(skips, ['suite: no root', 'other > left out: no keeper', 'other > gives up: no luck']);
});

test('a line is written for each file that ends, and one for the run', async () => {
  const { passed, lines } = await run({ first: `test('a', () => {});`, second: `test('b', () => {});` });
  assert.deepEqual([passed, lines], [2, 3]);
});

test('a test that fails, one that hangs and a file that does not load are counted as failed', async () => {
  const { passed, failed, skipped, code } = await run({
    bad: `test('bad', () => { throw new Error('bad'); }); test('hangs', { timeout: 50 }, () => new Promise(() => {}));`,
    early: `throw new Error('REQUIRE names it');`,
  });
  assert.deepEqual([passed, failed, skipped, code], [0, 3, 0, 1]);
});

test('a hook that fails is counted as failed, and so is each test that it keeps from running', async () => {
  const { passed, failed, skipped, code } = await run({
    hooks: `
describe('before', () => { beforeAll(() => { throw new Error('no'); }); test('a', () => {}); test('b', () => {}); });
describe('after', () => { afterAll(() => { throw new Error('no'); }); test('a', () => {}); });`,
  });
  assert.deepEqual([passed, failed, skipped, code], [1, 4, 0, 1]);
});

test('a rejection that nobody handles is counted as failed', async () => {
  const { passed, failed, code } = await run({
    rejects: `test('a', () => void Promise.reject(new Error('unheard')));`,
  });
  assert.deepEqual([passed, failed, code], [1, 1, 1]);
});

test('a file whose process dies is counted as failed, and named', async () => {
  const { passed, failed, code, output } = await run({
    dies: `test('a', () => new Promise(() => process.kill(process.pid, 'SIGKILL')));`,
    other: `test('a', () => {});`,
  });
  assert.deepEqual([passed, failed, code], [1, 1, 1]);
  assert.match(output, /dies\.test\.ts did not finish/);
});

test('a run without tests is counted as failed', async () => {
  const { passed, failed, code } = await run({});
  assert.deepEqual([passed, failed, code], [0, 1, 1]);
});

test('a run that is ended from outside leaves what was counted and a failure for each file that had not ended, and names them', async () => {
  const { passed, failed, code, output } = await run(
    { quick: `test('a', () => {});`, hangs: `test('b', { timeout: 0 }, () => new Promise(() => {}));` },
    1,
  );
  assert.deepEqual([passed, failed, code], [1, 1, 143]);
  assert.match(output, /SIGTERM\nhangs\.test\.ts did not finish/);
});

test('a file that leaves a variable of the environment behind is counted as failed, and the variable is named', async () => {
  const asUnit = {
    isolate: false,
    setupFiles: [SHARED_WORKER],
    experimental: { viteModuleRunner: false, nodeLoader: false },
  };
  const { passed, failed, code, output } = await run(
    {
      careless: `test('a', () => { process.env.LEFT_BEHIND = '1'; });`,
      careful: `test('b', () => { process.env.PUT_BACK = '1'; delete process.env.PUT_BACK; });`,
    },
    undefined,
    { ...asUnit, maxWorkers: 1 },
  );
  assert.deepEqual([passed, failed, code], [2, 1, 1]);
  assert.match(output, /process\.env\.LEFT_BEHIND/);
  assert.doesNotMatch(output, /PUT_BACK/);
});
