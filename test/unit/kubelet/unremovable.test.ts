import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'vitest';
import { asUser } from '../../support/as-user.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'berth-unremovable-'));
  chmodSync(path, 0o777);
  t.onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

/** Prints warnings; has no objects, and watches end with their signal. */
const SURROUNDINGS = `
  import fs from 'node:fs';
  import { silentLogger, systemClock as clock, systemRandom as random } from '${ROOT}/core/system.ts';
  const logger = { ...silentLogger, warn: (_fields, message) => console.log(message) };
  const store = {
    create: async (_resource, object) => object,
    patch: async () => {},
    list: async () => ({ items: [], metadata: { resourceVersion: '1' } }),
    watch: async function* (_resource, { signal }) {
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
    },
  };`;

describe('what cannot be removed', () => {
  test('of a pod does not keep the kubelet from starting', (t) => {
    const printed = asUser(
      folder(t),
      `${SURROUNDINGS}
      import { Kubelet } from '${ROOT}/local/kubelet/kubelet.ts';
      fs.mkdirSync('pods/gone', { recursive: true });
      fs.chmodSync('pods', 0o555);
      const kubelet = new Kubelet({ home: process.cwd(), images: {}, clock, random, logger });
      await kubelet.start(store);
      console.log('started');
      await kubelet.stop(0);
      fs.chmodSync('pods', 0o755);`,
    );
    assert.equal(printed, 'pod folder not removed\nstarted\n');
  });
  test('of a claim is told once, and directories of other claims are removed', (t) => {
    const printed = asUser(
      folder(t),
      `${SURROUNDINGS}
      import { Claims } from '${ROOT}/local/kubelet/claims.ts';
      fs.mkdirSync('volumes/gone', { recursive: true });
      fs.mkdirSync('volumes/deleted');
      fs.chmodSync('volumes', 0o555);
      const stop = new AbortController();
      let lists = 0;
      const claim = { metadata: { uid: 'deleted', resourceVersion: '2' } };
      const list = async () => {
        lists += 1;
        // The second round shows that the first has failed.
        if (lists === 2) stop.abort();
        return { items: [claim], metadata: { resourceVersion: '1' } };
      };
      const watch = async function* () {
        fs.chmodSync('volumes', 0o755);
        yield { type: 'DELETED', object: claim };
        stop.abort();
      };
      const held = setInterval(() => {}, 1000);
      const claims = new Claims({ folder: 'volumes', store: { ...store, list, watch }, clock, logger });
      await claims.sweep(stop.signal);
      clearInterval(held);
      console.log(lists, fs.readdirSync('volumes').join());`,
    );
    assert.equal(printed, 'directory of a volume not removed\n1 gone\n');
  });
});
