import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import { connectionOptions } from '../../../../cli/connect/connect.ts';

const root = mkdtempSync(join(tmpdir(), 'berth-cli-home-'));
afterAll(() => rmSync(root, { recursive: true }));
const stopped = join(root, 'stopped');
const running = join(root, 'running');
for (const home of [stopped, running]) mkdirSync(home);
writeFileSync(join(running, 'state.json'), JSON.stringify({ pid: process.pid }));
writeFileSync(join(stopped, 'state.json'), JSON.stringify({ pid: 2 ** 22 + 1 }));

const pathWith = (flags: object, env: NodeJS.ProcessEnv) => connectionOptions(flags, env).path;

describe('the kubeconfig that counts', () => {
  test('is --kubeconfig before everything else', () => {
    assert.equal(pathWith({ kubeconfig: '/k' }, { BERTH_HOME: running, KUBECONFIG: '/e' }), '/k');
  });
  test('is KUBECONFIG, named by hand, before the embedded cluster’s', () => {
    assert.deepEqual(connectionOptions({}, { BERTH_HOME: running, KUBECONFIG: '/e' }).path, undefined);
  });
  test('is that of the running embedded cluster before ~/.kube/config', () => {
    assert.equal(pathWith({}, { BERTH_HOME: running }), join(running, 'kubeconfig'));
    assert.equal(pathWith({ context: 'berth-local' }, { BERTH_HOME: running }), join(running, 'kubeconfig'));
  });
  test('is not that of an embedded cluster that does not run, or when --context names another', () => {
    assert.equal(pathWith({}, { BERTH_HOME: stopped }), undefined);
    assert.equal(pathWith({}, { BERTH_HOME: join(root, 'none') }), undefined);
    assert.equal(pathWith({ context: 'kind' }, { BERTH_HOME: running }), undefined);
  });
});
