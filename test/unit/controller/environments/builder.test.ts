import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { sessionPod } from '../../../../controller/pod/pod.ts';
import { builderAgent, exposedCredentials, rebuild, wantedBuild } from '../../../../controller/settings/builder.ts';
import { effective, isProblem } from '../../../../controller/settings/effective.ts';
import type { StoredEnvironment } from '../../../../core/resources/kinds.ts';
import { aClass, aSession, aWorld } from '../../../support/world.ts';

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

describe('a build in an image of its own', () => {
  test('is refused where the class has credentials, which that image would get', () => {
    const { spec } = aClass({ environments: { credentials: { name: 'reader' } } });
    assert.equal(exposedCredentials({ image: 'mine' }, spec)?.reason, 'NotAllowed');
    assert.equal(exposedCredentials({}, spec), undefined);
    assert.equal(exposedCredentials({ image: 'mine' }, aClass().spec), undefined);
    const session = aSession({ spec: { build: 'Environment', image: 'mine' } as never });
    const sessionClass = aClass({
      environments: { credentials: { name: 'reader' } },
      overrides: ['image', 'agent.command'],
    });
    const settings = effective(session, sessionClass, installation);
    assert.ok(isProblem(settings));
    assert.match(settings.message, /^spec\.image: the index of the class has credentials/);
  });
});

describe('another build of an Environment', () => {
  const wanted = {
    hash: 'a'.repeat(64),
    name: 'env-a',
    spec: { class: 'python', turns: 'One', build: 'Environment', input: { requirements: ['httpx'], python: '3.12' } },
  } as const;
  const hash = `sha256:${'b'.repeat(64)}`;

  test('installs the packages of the first, by their digests, under a name of its own', () => {
    const again = rebuild(wanted, [{ name: 'httpx', version: '1.0', hashes: [hash] }]);
    assert.deepEqual(again?.spec.input, { python: '3.12', requirements: [`httpx==1.0 --hash=${hash}`], locked: true });
    assert.deepEqual([again?.hash, again?.name === wanted.name], [wanted.hash, false]);
    assert.equal(rebuild(wanted, [{ name: 'httpx', version: '1.0', hashes: [hash] }])?.name, again?.name);
  });

  test('resolves anew where the first, of an earlier release, has a digest that the requirements do not name', () => {
    const other = `sha256:${'c'.repeat(64)}`;
    const requirements = [`HTTPX ==1.0 --hash=${hash}`, 'idna'];
    const strict = { ...wanted, spec: { ...wanted.spec, input: { requirements } } };
    const packages = (...hashes: string[]) => [
      { name: 'httpx', version: '1.0', hashes },
      { name: 'idna', version: '3.0', hashes: [other] },
    ];
    assert.ok(rebuild(strict, packages(hash)));
    assert.equal(rebuild(strict, packages(other)), undefined);
    assert.equal(rebuild(strict, packages(hash, other)), undefined);
  });

  test('resolves anew where no packages or not all digests are known', () => {
    assert.equal(rebuild(wanted, undefined), undefined);
    assert.equal(rebuild(wanted, []), undefined);
    assert.equal(rebuild(wanted, [{ name: 'httpx', version: '1.0' }]), undefined);
    const packages = [
      { name: 'httpx', version: '1.0', hashes: [hash] },
      { name: 'idna', version: '3.0' },
    ];
    assert.equal(rebuild(wanted, packages), undefined);
  });
});

describe('the pod of a build', () => {
  const podOf = (environments: object) => {
    const sessionClass = aClass({ environments, runnerImage: 'Python' });
    const session = aSession({ spec: { build: 'Environment' } as never });
    const here = { ...installation, imagesArePrograms: false, pythonRunnerImage: 'berth/runner-python' };
    const settings = effective(session, sessionClass, here);
    assert.ok(!isProblem(settings), JSON.stringify(settings));
    return sessionPod(session, 1, settings);
  };

  test('mounts the claim of the class as the cache of uv', () => {
    const { volumes, containers } = podOf({ cache: { claim: 'wheels' } }).spec;
    assert.deepEqual(volumes?.at(-1), { name: 'cache', persistentVolumeClaim: { claimName: 'wheels' } });
    assert.deepEqual(containers[0]?.volumeMounts?.at(-1), { name: 'cache', mountPath: '/berth-uv-cache' });
  });

  test('has none where the class names none', () => {
    assert.equal(
      podOf({}).spec.volumes?.some(({ name }) => name === 'cache'),
      false,
    );
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

  test('has another name where packages may be built from source', () => {
    assert.notEqual(name({}), name({}, { sourceDistributions: true }));
  });

  test('of more requirements than an input may hold is refused', () => {
    const hashes = Array.from({ length: 200 }, () => `--hash=sha256:${'a'.repeat(64)}`).join(' ');
    const requirements = Array.from({ length: 10 }, (_, i) => `p${i}==1 ${hashes}`);
    assert.equal(name({ requirements }), 'InvalidSpec');
  });

  test('has no other name for other credentials: they do not change what is installed', () => {
    assert.equal(name({}, { credentials: { name: 'a' } }), name({}, { credentials: { name: 'b' } }));
  });
});
