import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach } from 'vitest';
import type { ApiServerOptions } from '../../../local/apiserver/types.ts';
import { widgetDefinition } from '../../contract/widget.ts';
import { type TestServer, testServer } from '../../support/api-server.ts';
import { RawApi } from '../../support/raw-api.ts';

export const widgets = '/apis/contract.berth.dev/v1/namespaces/default/widgets';
/** The smallest one that is right. */
export const widget = (name: string, spec: object = { size: 1 }) => ({
  apiVersion: 'contract.berth.dev/v1',
  kind: 'Widget',
  metadata: { name },
  spec,
});

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A server for one test, and the API as it is. */
export async function start(options: Partial<ApiServerOptions> = {}): Promise<{ server: TestServer; api: RawApi }> {
  const server = await testServer(options);
  const api = new RawApi(server.connection);
  cleanups.push(
    () => server.close(),
    () => api.close(),
  );
  return { server, api };
}

/** A server that knows widgets. */
export async function withWidgets(options: Partial<ApiServerOptions> = {}) {
  const started = await start(options);
  const { status, text } = await started.api.post(
    '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
    widgetDefinition,
  );
  assert.equal(status, 201, text);
  return started;
}

/** An empty folder that is gone after the test. */
export async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'berth-apiserver-'));
  cleanups.push(() => rm(path, { recursive: true, force: true }));
  return path;
}
