import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { type Any, find, render } from '../support/chart.ts';

const READER = ['metrics.readers[0].namespace=monitoring', 'metrics.readers[0].name=prometheus'];

/** Ports of a program's pods by name. */
function portsOf(objects: Any[], program: string): Record<string, number> {
  const { ports } = find(objects, 'Deployment', program).spec.template.spec.containers[0];
  return Object.fromEntries(ports.map(({ name, containerPort }: Any) => [name, containerPort]));
}

describe('objects of the chart for Prometheus', () => {
  test('are by default a right that nobody has, and nothing that needs the Prometheus Operator', async () => {
    const objects = await render();
    const { rules } = find(objects, 'ClusterRole', 'berth-system:berth-metrics-reader');
    assert.deepEqual(rules, [{ nonResourceURLs: ['/metrics'], verbs: ['get'] }]);
    assert.equal(find(objects, 'ClusterRoleBinding', 'berth-system:berth-metrics-reader'), undefined);
    assert.ok(!objects.some(({ apiVersion }) => apiVersion.startsWith('monitoring.')));
    assert.equal(find(objects, 'Deployment', 'berth-controller').spec.template.metadata.annotations, undefined);
  });

  test('PodMonitors name ports that the pods have, and the API’s comes with a token alone', async () => {
    const on = ['metrics.podMonitor.enabled=true', 'metrics.podMonitor.labels.release=prometheus'];
    const without = await render(...on);
    assert.equal(find(without, 'PodMonitor', 'berth-api'), undefined);
    const objects = await render(...on, 'metrics.podMonitor.apiToken.secret=scraper');
    for (const program of ['berth-controller', 'berth-api']) {
      const monitor = find(objects, 'PodMonitor', program);
      const [endpoint] = monitor.spec.podMetricsEndpoints;
      assert.equal(monitor.metadata.labels.release, 'prometheus');
      assert.equal(endpoint.path, '/metrics');
      assert.ok(portsOf(objects, program)[endpoint.port], program);
      const { labels } = find(objects, 'Deployment', program).spec.template.metadata;
      for (const [label, value] of Object.entries(monitor.spec.selector.matchLabels))
        assert.equal(labels[label], value);
    }
    const { authorization } = find(objects, 'PodMonitor', 'berth-api').spec.podMetricsEndpoints[0];
    assert.deepEqual(authorization, { credentials: { name: 'scraper', key: 'token' } });
  });

  test('annotations and readers are as asked, beside annotations of one’s own', async () => {
    const objects = await render('metrics.annotations=true', 'controller.podAnnotations.mine=yes', ...READER);
    assert.deepEqual(find(objects, 'Deployment', 'berth-controller').spec.template.metadata.annotations, {
      'prometheus.io/scrape': 'true',
      'prometheus.io/port': String(portsOf(objects, 'berth-controller').health),
      'prometheus.io/path': '/metrics',
      mine: 'yes',
    });
    assert.deepEqual(find(objects, 'ClusterRoleBinding', 'berth-system:berth-metrics-reader').subjects, [
      { kind: 'ServiceAccount', name: 'prometheus', namespace: 'monitoring' },
    ]);
  });
});
