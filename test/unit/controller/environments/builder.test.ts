import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { builderAgent, wantedBuild } from '../../../../controller/settings/builder.ts';
import type { StoredEnvironment } from '../../../../core/resources/kinds.ts';
import { aClass, aWorld } from '../../../support/world.ts';

const { installation } = aWorld();

describe('the agent of a build', () => {
  test('is told the index, and gets its credentials and certificates from Secrets', () => {
    const environments = {
      index: 'https://packages.example.com/simple',
      credentials: { name: 'reader' },
      certificates: { name: 'roots' },
    };
    const { command, env } = builderAgent(aClass({ environments }).spec, installation);
    assert.deepEqual(command?.slice(-2), ['--index', environments.index]);
    const from = env?.map(({ name, valueFrom }) => [name, valueFrom?.secretKeyRef?.name, valueFrom?.secretKeyRef?.key]);
    assert.deepEqual(from, [
      ['UV_INDEX_BERTH_USERNAME', 'reader', 'username'],
      ['UV_INDEX_BERTH_PASSWORD', 'reader', 'password'],
      ['UV_INDEX_BERTH_CERTIFICATES', 'roots', 'ca.crt'],
    ]);
  });

  test('without an index of its own is told none, and gets nothing', () => {
    const { command, env } = builderAgent(aClass().spec, installation);
    assert.deepEqual([command?.includes('--index'), env], [false, undefined]);
  });
});

describe('the build of an Environment', () => {
  const name = (spec: object, environments?: object) => {
    const metadata = { name: 'tools', namespace: 'team', uid: 'e', resourceVersion: '1', creationTimestamp: '' };
    const environment: StoredEnvironment = { metadata, spec: { class: 'default', requirements: ['httpx'], ...spec } };
    const wanted = wantedBuild(environment, aClass({ ...(environments ? { environments } : {}) }), installation);
    return 'name' in wanted ? wanted.name : wanted.reason;
  };

  test('has the same name for equal packages, and another for each other Python, index and package', () => {
    assert.equal(name({}), name({}));
    const others = [
      name({ requirements: ['rich'] }),
      name({ python: '3.12' }),
      name({}, { index: 'https://x.example/' }),
    ];
    assert.equal(new Set([name({}), ...others]).size, 4);
  });

  test('has no other name for other credentials: they do not change what is installed', () => {
    assert.equal(name({}, { credentials: { name: 'a' } }), name({}, { credentials: { name: 'b' } }));
  });
});
