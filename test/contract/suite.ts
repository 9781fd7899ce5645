import { describe } from 'vitest';
import { accessContract } from './access.ts';
import { admissionContract } from './admission.ts';
import { builtinContract } from './builtins.ts';
import { deletionContract } from './deletions.ts';
import { discoveryContract } from './discovery.ts';
import { listContract } from './lists.ts';
import { objectContract } from './objects.ts';
import { patchContract } from './patches.ts';
import { ruleContract } from './rules.ts';
import { schemaContract } from './schemas.ts';
import { subresourceContract } from './subresources.ts';
import type { Connect } from './target.ts';
import { watchContract } from './watches.ts';

/**
 * Tests of the behaviour of an API server that Berth and kubectl rely on. Runs against the embedded one and a real one.
 * The expected results were taken from the real one.
 */
export function contractSuite(name: string, connect: Connect): void {
  describe(`contract of the Kubernetes API: ${name}`, () => {
    objectContract(connect);
    subresourceContract(connect);
    schemaContract(connect);
    ruleContract(connect);
    listContract(connect);
    watchContract(connect);
    patchContract(connect);
    builtinContract(connect);
    deletionContract(connect);
    accessContract(connect);
    admissionContract(connect);
    discoveryContract(connect);
  });
}
