import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { KubeClient } from '../../../core/kube/client.ts';
import { requireSupportedVersion, UnsupportedVersionError } from '../../../core/kube/server-version.ts';

const server = (major: string, minor: string): Pick<KubeClient, 'raw'> => ({
  raw: async (method, path) => {
    assert.deepEqual([method, path], ['GET', '/version']);
    return { major, minor, gitVersion: `v${major}.${minor}.0` };
  },
});

describe('a cluster', () => {
  for (const [major, minor] of [
    ['1', '32'],
    ['1', '35+'],
    ['2', '0'],
  ] as const) {
    test(`of version ${major}.${minor} is supported`, async () => {
      assert.equal(await requireSupportedVersion(server(major, minor)), `v${major}.${minor}.0`);
    });
  }
  for (const [major, minor] of [
    ['1', '31'],
    ['1', '31+'],
    ['0', '40'],
  ] as const) {
    test(`of version ${major}.${minor} is refused, and the oldest version that is supported is named`, async () => {
      await assert.rejects(requireSupportedVersion(server(major, minor)), (error: unknown) => {
        assert.ok(error instanceof UnsupportedVersionError);
        assert.equal(error.code, 'KubernetesUnsupported');
        assert.match(error.message, /1\.32 or newer/);
        return true;
      });
    });
  }
});
