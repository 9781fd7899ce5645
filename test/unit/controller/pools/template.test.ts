import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { CachedSession } from '../../../../controller/observed/world.ts';
import { templateHash } from '../../../../controller/pod/pod.ts';
import { poolTemplate } from '../../../../controller/pools/template.ts';
import { effective, isProblem } from '../../../../controller/settings/effective.ts';
import type { StoredSessionClass } from '../../../../core/resources/kinds.ts';
import { aClass, aSession, aWorld } from '../../../support/world.ts';

type ClassSpec = Parameters<typeof aClass>[0];

const { installation } = aWorld();
const overrides = ['agent.command', 'agent.env', 'agent.secretFiles', 'image', 'resources', 'persistence'] as never;

const templateOf = (sessionClass: StoredSessionClass | undefined, ofClass = 'default') =>
  poolTemplate({ namespace: 'team', class: ofClass }, sessionClass, installation);

/** Digest of the pods of a pool of this class. */
function hashOfPool(spec: ClassSpec, ofClass?: string): string {
  const template = templateOf(aClass(spec), ofClass);
  if ('reason' in template) throw new Error(template.message);
  return template.hash;
}

/** Digest of the pod that a session of this class would get. */
function hashOfSession(spec: ClassSpec, session: Partial<CachedSession['spec']> = {}): string {
  const settings = effective(aSession({ spec: session }), aClass(spec), installation);
  if (isProblem(settings)) throw new Error(settings.message);
  return templateHash('default', settings);
}

describe('the pods of a pool', () => {
  test('fit every session that sets nothing which its pod depends on, whatever its program', () => {
    for (const agent of [{ command: ['one'] }, { command: ['two'], env: [{ name: 'A', value: 'b' }] }])
      assert.equal(hashOfSession({ overrides }, { agent }), hashOfPool({ overrides }));
    const secret = { name: 'KEY', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } };
    const withSecret = { overrides, secrets: ['s'], agent: { command: ['own'], env: [secret] } };
    assert.equal(hashOfSession(withSecret, {}), hashOfPool(withSecret));
  });
  test('fit no session with an image, resources or Secrets of its own', () => {
    const pool = hashOfPool({ overrides, secrets: ['s'] });
    const env = [{ name: 'KEY', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }];
    for (const own of [
      { image: 'own:1' },
      { resources: { requests: { cpu: '2' } } },
      { agent: { command: ['agent'], env } },
    ] as Partial<CachedSession['spec']>[])
      assert.notEqual(hashOfSession({ overrides, secrets: ['s'] }, own), pool, JSON.stringify(own));
  });
  test('fit no session of another class, nor of another version of theirs', () => {
    assert.notEqual(hashOfPool({ overrides }, 'other'), hashOfPool({ overrides }));
    assert.notEqual(hashOfPool({ overrides, resources: { requests: { cpu: '2' } } }), hashOfPool({ overrides }));
    assert.equal(hashOfPool({ overrides, maxTimeouts: { turn: '1m' } }), hashOfPool({ overrides }));
  });
});

describe('a class can have no pool', () => {
  const problemOf = (sessionClass: StoredSessionClass | undefined) => {
    const template = templateOf(sessionClass);
    return 'reason' in template ? `${template.reason}: ${template.message}` : '';
  };
  test('that does not exist', () => {
    assert.match(problemOf(undefined), /^ClassNotFound: spec\.class: .*"default"; create it, or name one of/);
  });
  test('whose sessions each have a volume', () => {
    const persistence = { workspace: { type: 'Volume', size: '1Gi' } };
    assert.match(
      problemOf(aClass({ persistence } as ClassSpec)),
      /^InvalidSpec: spec\.class: .*volume.*name another class/,
    );
  });
  test('whose pods have no runner', () => {
    const spec = { runner: 'None', image: 'any:1' } as ClassSpec;
    assert.match(problemOf(aClass(spec)), /^InvalidSpec: spec\.class: .*runner: None.*name another class/);
  });
});
