import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { type Any, render, renderAs } from '../support/chart.ts';

/** Everything that a release may have, but for the classes, which one release of a cluster has. */
const EVERYTHING = [
  ...['defaultClass.create=false', 'pythonClass.create=false', 'api.enter.enabled=true', 'api.tls.secretName=cert'],
  ...['metrics.podMonitor.enabled=true', 'metrics.podMonitor.apiToken.secret=scraper', 'metrics.annotations=true'],
  ...['metrics.readers[0].namespace=monitoring', 'metrics.readers[0].name=prometheus'],
  ...['api.ingress.enabled=true', 'api.ingress.host=berth.example.com'],
  ...['api.httpRoute.enabled=true', 'api.httpRoute.parentRefs[0].name=public'],
];

describe('releases in one cluster', () => {
  test('share no object, whether they have one name in two namespaces or two names in one namespace', async () => {
    const releases = [
      ['berth', 'berth-system', 'one'],
      ['berth', 'other', 'two'],
      ['berth', 'other-system', 'three'],
      ['second', 'berth-system', 'four'],
      ['second', 'other', 'five'],
      // Names of release and namespace that are the same text when they are joined by a dash.
      ['c', 'a-b', 'six'],
      ['b-c', 'a', 'seven'],
    ] as const;
    const rendered = await Promise.all(
      releases.map(([release, namespace, served]) =>
        renderAs(
          ...([release, namespace, ...EVERYTHING, `namespaces={${served}}`] as const),
          ...[`pools[0].namespace=${served}`, `quotas[0].namespace=${served}`, 'quotas[0].turns=1'],
        ),
      ),
    );
    const names = rendered.flat().map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`);
    assert.ok(names.length > 30 * releases.length);
    assert.deepEqual(
      names.filter((name, index) => names.indexOf(name) !== index),
      [],
    );
  });

  test('have the ClusterRoles for users under short names in the namespace berth-system, else under names with the namespace', async () => {
    const roles = async (release: string, namespace: string) =>
      (await renderAs(release, namespace))
        .filter(({ metadata }) => metadata.labels?.['rbac.authorization.k8s.io/aggregate-to-admin'])
        .map(({ metadata }) => metadata.name)
        .toSorted();
    const short = ['berth-approve', 'berth-edit', 'berth-enter', 'berth-pools', 'berth-view'];
    assert.deepEqual(await roles('berth', 'berth-system'), short);
    assert.deepEqual(
      await roles('second', 'team'),
      short.map((name) => `team:second-${name}`),
    );
  });
});

describe('the images of a release', () => {
  const images = (objects: Any[]) =>
    objects
      .filter(({ kind }) => kind === 'Deployment')
      .flatMap(({ spec }) => spec.template.spec.containers)
      .flatMap(({ image, env }) => [
        image,
        ...env.flatMap(({ name, value }: Any) => (/IMAGE$/.test(name) ? value : [])),
      ])
      .map((image: string) => image.replace(/:[^:]*$/, ''));

  test('are those of a registry that somebody named: without one the chart says what to set', async () => {
    const refused = /image.registry is empty. Set it to the registry .* set image.registry=localhost/;
    await assert.rejects(render('image.registry='), refused);
    const of = (registry: string) =>
      ['api', 'controller', 'runner', 'runner-python'].map((name) => `${registry}/berth/${name}`);
    assert.deepEqual(
      images(await render('image.registry=registry.example.com:5000/')).toSorted(),
      of('registry.example.com:5000'),
    );
    assert.deepEqual(images(await render('image.registry=localhost')).toSorted(), of('localhost'));
    // Each image may be in a registry of its own.
    const own = ['api.image', 'controller.image', 'runner.image', 'runner.pythonImage'];
    const repositories = own.map((path, index) => `${path}.repository=one.example.com/mirror/${index}`);
    await assert.rejects(render('image.registry=', ...repositories.slice(1)), refused);
    assert.deepEqual(
      images(await render('image.registry=', ...repositories)).toSorted(),
      own.map((_, index) => `one.example.com/mirror/${index}`),
    );
  });
});
