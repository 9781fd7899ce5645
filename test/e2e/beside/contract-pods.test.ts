import { describe } from 'vitest';
import { podContract } from '../../contract/pods.ts';
import { busyboxImage } from '../support/any-images.ts';
import { connect } from '../support/contract-target.ts';

describe('contract of pods: a real kubelet', () => {
  podContract(async () => ({
    ...(await connect()),
    image: busyboxImage,
    command: (script) => ['/bin/sh', '-c', script],
  }));
});
