/** Questions to the API server about who may do what. */
import assert from 'node:assert/strict';
import { eventually } from '../../support/eventually.ts';
import { release, releaseNamespace, tryKubectl } from './cluster.ts';

/** User name of the service account of a program of the release. */
export const account = (component: string) => `system:serviceaccount:${releaseNamespace}:${release}-${component}`;

export async function can(who: string, verb: string, resource: string, ...more: string[]): Promise<boolean> {
  const { stdout, stderr } = await tryKubectl(['auth', 'can-i', verb, resource, '--as', who, ...more]);
  const answer = /^(yes|no)\b/.exec(stdout)?.[1];
  assert.ok(answer, stderr);
  return answer === 'yes';
}

/** Resolves once it is so: the API server hears of roles and bindings by a watch of its own. */
export async function becomes(
  allowed: boolean,
  who: string,
  verb: string,
  resource: string,
  ...more: string[]
): Promise<void> {
  await eventually(async () => (await can(who, verb, resource, ...more)) === allowed, {
    what: `${who} ${allowed ? 'may' : 'may not'} ${verb} ${resource} ${more.join(' ')}`,
  });
}
