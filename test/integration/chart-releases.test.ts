import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { describe, test } from 'vitest';
import { packCharts } from '../../package/charts.ts';
import { type Any, CHARTS, REQUIRED, render, renderAs, renderChart, renderWithTests } from '../support/chart.ts';

/** Everything that a release may have, but for the classes, which one release of a cluster has. */
const EVERYTHING = [
  ...['defaultClass.create=false', 'pythonClass.create=false', 'api.enter.enabled=true', 'api.tls.secretName=cert'],
  ...['metrics.podMonitor.enabled=true', 'metrics.podMonitor.apiToken.secret=scraper', 'metrics.annotations=true'],
  ...['metrics.readers[0].namespace=monitoring', 'metrics.readers[0].name=prometheus'],
  ...['api.ingress.enabled=true', 'api.ingress.host=berth.example.com'],
  ...['api.httpRoute.enabled=true', 'api.httpRoute.parentRefs[0].name=public'],
];

/** Renders a release with the objects of `helm test`, which are in the cluster at the same time. */
const everythingOf = (release: string, namespace: string, ...values: string[]) =>
  renderChart(
    join(CHARTS, 'berth'),
    release,
    namespace,
    ...[...REQUIRED, ...values].flatMap((value) => ['--set', value]),
  );

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
        everythingOf(
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
  /** References of all images that the objects name. */
  const references = (objects: Any[]): string[] =>
    objects
      .filter(({ kind }) => kind === 'Deployment')
      .flatMap(({ spec }) => spec.template.spec.containers)
      .flatMap(({ image, env }) => [
        image,
        ...env.flatMap(({ name, value }: Any) => (/IMAGE$/.test(name) ? value : [])),
      ]);
  const images = (objects: Any[]) => references(objects).map((image) => image.replace(/:[^:]*$/, ''));

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

  test('are those of a tag that somebody named, or of the commit for which `make charts` has packed the chart', async (t) => {
    const tags = (objects: Any[]) => new Set(references(objects).map((image) => image.replace(/.*:/, '')));
    const refused =
      /image.tag is empty, .* Install the chart that `make charts` packs, .* or set image.tag to the tag in build/;
    await assert.rejects(render('image.tag='), refused);
    assert.deepEqual([...tags(await render('image.tag=here'))], ['here']);

    const folder = await mkdtemp(join(tmpdir(), 'berth-charts-'));
    t.onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const { version } = JSON.parse(await readFile(join(CHARTS, '../package.json'), 'utf8'));
    const tag = `${version}-g1a2b3c4d-dirty-5f3e12ab`;
    const archives = await packCharts(tag, folder);
    assert.deepEqual(
      archives.map((path) => basename(path)),
      ['berth-crds', 'berth'].map((name) => `${name}-${version}+g1a2b3c4d.dirty.5f3e12ab.tgz`),
    );
    const objects = await renderChart(archives[1]!, 'berth', 'berth-system', '--set', 'image.registry=localhost');
    assert.deepEqual([...tags(objects)], [tag]);
    const names = (found: Any[]) => found.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    assert.deepEqual(names(objects), names(await renderWithTests()));
    const definitions = await renderChart(archives[0]!, 'crds', 'berth-system');
    assert.deepEqual(definitions, await renderChart(join(CHARTS, 'berth-crds'), 'crds', 'berth-system'));
    const bytes = () => Promise.all(archives.map((path) => readFile(path)));
    const first = await bytes();
    await packCharts(tag, folder);
    assert.deepEqual(await bytes(), first);
    await assert.rejects(packCharts('0.0.0-g1a2b3c4d', folder), /the images 0.0.0-g1a2b3c4d are not of version/);
  });
});
