import { describe } from 'node:test';
import { listContract } from './lists.ts';
import { objectContract } from './objects.ts';
import { schemaContract } from './schemas.ts';
import type { Connect } from './target.ts';
import { watchContract } from './watches.ts';

/**
 * What Berth and kubectl rely on in an API server, as tests. Runs against the embedded one and a real one: what is expected was
 * taken from the real one.
 */
export function contractSuite(name: string, connect: Connect): void {
  describe(`contract of the Kubernetes API: ${name}`, () => {
    objectContract(connect);
    schemaContract(connect);
    listContract(connect);
    watchContract(connect);
  });
}
