import type { KubeClient } from './client.ts';

/**
 * Oldest Kubernetes version in Berth's tests, and the first whose clusters cannot switch selectable fields off
 * (feature gate CustomResourceFieldSelectors).
 */
export const OLDEST_SUPPORTED = { major: 1, minor: 32 };

/** The cluster is older than the oldest version in Berth's tests. */
export class UnsupportedVersionError extends Error {
  readonly code = 'KubernetesUnsupported';
}

/** Resolves with the server's version, `v1.35.4`; rejects with an UnsupportedVersionError when it is too old. */
export async function requireSupportedVersion(client: Pick<KubeClient, 'raw'>, signal?: AbortSignal): Promise<string> {
  const version = (await client.raw('GET', '/version', signal ? { signal } : {})) as {
    major: string;
    minor: string;
    gitVersion: string;
  };
  // The minor version may have a suffix: some providers write `35+`.
  const major = Number.parseInt(version.major, 10);
  const minor = Number.parseInt(version.minor, 10);
  const { major: oldestMajor, minor: oldestMinor } = OLDEST_SUPPORTED;
  if (major < oldestMajor || (major === oldestMajor && minor < oldestMinor)) {
    throw new UnsupportedVersionError(
      `the cluster runs Kubernetes ${version.gitVersion}; Berth needs ${oldestMajor}.${oldestMinor} or newer`,
    );
  }
  return version.gitVersion;
}
