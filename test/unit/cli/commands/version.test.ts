import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { parse } from 'yaml';
import { VERSION } from '../../../../core/program/version.ts';

const ROOT = join(import.meta.dirname, '../../../..');
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

describe('the version of package.json', () => {
  test('is what the programs tell of themselves', () => assert.equal(VERSION, version));

  test('is that of the chart and of the images it names', () => {
    const chart = parse(readFileSync(join(ROOT, 'charts', 'berth', 'Chart.yaml'), 'utf8'));
    assert.deepEqual([chart.version, chart.appVersion], [version, version]);
  });

  const printed = (program: string, ...args: string[]) => execFileSync(program, args, { encoding: 'utf8' });

  test('is printed by berth --version', () => {
    assert.equal(printed(join(ROOT, 'bin', 'berth'), '--version'), `${version}\n`);
  });

  test('is printed by the embedded cluster’s --version', () => {
    assert.equal(printed(process.execPath, join(ROOT, 'local', 'main.ts'), '--version'), `${version}\n`);
  });
});
