import { describe } from 'vitest';
import { podContract } from '../../contract/pods.ts';
import { SHELL_IMAGE, TestCluster } from './cluster.ts';

describe('contract of pods: embedded', () => {
  podContract(async () => {
    const cluster = await TestCluster.start();
    return {
      connection: cluster.connection,
      image: SHELL_IMAGE,
      command: (script) => ['/bin/sh', '-c', script],
      close: () => cluster.stop(),
    };
  });
});
