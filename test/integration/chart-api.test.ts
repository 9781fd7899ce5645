import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { apiConfig } from '../../api/config.ts';
import { parseConfig } from '../../core/program/config.ts';
import { type Any, find, render } from '../support/chart.ts';

const TLS = 'api.tls.secretName=cert';
const MONITOR = ['metrics.podMonitor.enabled=true', 'metrics.podMonitor.apiToken.secret=scraper'];
const INGRESS = ['api.ingress.enabled=true', 'api.ingress.host=berth.example.com'];
const ROUTE = ['api.httpRoute.enabled=true', 'api.httpRoute.parentRefs[0].name=public'];

const container = (objects: Any[]) => find(objects, 'Deployment', 'berth-api').spec.template.spec.containers[0];
const environment = (objects: Any[]): Record<string, string> =>
  Object.fromEntries(container(objects).env.map(({ name, value }: Any) => [name, value]));

/** Ports, probes and backends by which the API is reached. */
function doors(objects: Any[]) {
  const { ports, livenessProbe, readinessProbe } = container(objects);
  const [servicePort] = find(objects, 'Service', 'berth-api').spec.ports;
  const [endpoint] = find(objects, 'PodMonitor', 'berth-api').spec.podMetricsEndpoints;
  const backend = find(objects, 'Ingress', 'berth-api').spec.rules[0].http.paths[0].backend.service;
  return {
    container: ports[0].name,
    probes: [livenessProbe, readinessProbe].map(({ httpGet }) => `${httpGet.scheme} ${httpGet.port}`),
    service: `${servicePort.name} ${servicePort.port} ${servicePort.targetPort}`,
    monitor: `${endpoint.scheme ?? 'http'} ${endpoint.port}`,
    ingress: `${backend.name} ${backend.port.name}`,
    route: find(objects, 'HTTPRoute', 'berth-api').spec.rules[0].backendRefs[0].port,
  };
}

describe('objects of the chart for the HTTP API', () => {
  test('reach it by HTTP without a certificate, and by HTTPS everywhere with one', async () => {
    assert.deepEqual(doors(await render(...MONITOR, ...INGRESS, ...ROUTE)), {
      container: 'http',
      probes: ['HTTP http', 'HTTP http'],
      service: 'http 80 http',
      monitor: 'http http',
      ingress: 'berth-api http',
      route: 80,
    });
    assert.deepEqual(doors(await render(TLS, ...MONITOR, ...INGRESS, ...ROUTE)), {
      container: 'https',
      probes: ['HTTPS https', 'HTTPS https'],
      service: 'https 443 https',
      monitor: 'https https',
      ingress: 'berth-api https',
      route: 443,
    });
    const [port] = find(await render(TLS, 'api.service.port=8443'), 'Service', 'berth-api').spec.ports;
    assert.equal(port.port, 8443);
  });

  test('mount the Secret of the certificate as a folder, which the kubelet renews, and name its files', async () => {
    const objects = await render(TLS);
    const [mount] = container(objects).volumeMounts;
    assert.equal(mount.subPath, undefined);
    const { BERTH_API_TLS_CERT_FILE, BERTH_API_TLS_KEY_FILE } = environment(objects);
    assert.equal(BERTH_API_TLS_CERT_FILE, `${mount.mountPath}/tls.crt`);
    assert.equal(BERTH_API_TLS_KEY_FILE, `${mount.mountPath}/tls.key`);
    assert.deepEqual(find(objects, 'Deployment', 'berth-api').spec.template.spec.volumes, [
      { name: mount.name, secret: { secretName: 'cert', defaultMode: 0o644 } },
    ]);
    assert.equal(container(await render()).volumeMounts, undefined);
  });

  test('are refused where tokens would leave the cluster in plain text, unless that is said twice', async () => {
    for (const type of ['LoadBalancer', 'NodePort']) {
      const service = `api.service.type=${type}`;
      const words = new RegExp(
        `api.service.type is ${type}, but the API has no TLS.*Set api.tls.secretName, or set api.allowPlainText`,
      );
      await assert.rejects(render(service), words);
      for (const also of [TLS, 'api.allowPlainText=true']) {
        assert.equal(find(await render(service, also), 'Service', 'berth-api').spec.type, type);
      }
      await render(service, 'api.enabled=false');
    }
  });

  test('with an Ingress have TLS at it: by a Secret, by the default certificate, or not at all where that is allowed', async () => {
    const spec = async (...values: string[]) => find(await render(...INGRESS, ...values), 'Ingress', 'berth-api').spec;
    const hosts = ['berth.example.com'];
    assert.deepEqual((await spec()).tls, [{ hosts }]);
    assert.deepEqual((await spec('api.ingress.tlsSecretName=x')).tls, [{ hosts, secretName: 'x' }]);
    assert.equal((await spec('api.allowPlainText=true')).tls, undefined);
    assert.equal((await spec('api.ingress.className=nginx')).ingressClassName, 'nginx');
    await assert.rejects(render('api.ingress.enabled=true'), /api.ingress.host is empty/);
  });

  test('with an HTTPRoute name its Gateway', async () => {
    const values = [
      ...ROUTE,
      'api.httpRoute.parentRefs[0].sectionName=https',
      'api.httpRoute.hostnames={a.example.com}',
    ];
    const { spec } = find(await render(...values), 'HTTPRoute', 'berth-api');
    assert.deepEqual(spec.parentRefs, [{ name: 'public', sectionName: 'https' }]);
    assert.deepEqual(spec.hostnames, ['a.example.com']);
    await assert.rejects(render('api.httpRoute.enabled=true'), /api.httpRoute.parentRefs is empty/);
  });

  test('tell Prometheus the name in the certificate, and what else it needs to trust it', async () => {
    const tlsConfig = async (...values: string[]) =>
      find(await render(TLS, ...MONITOR, ...values), 'PodMonitor', 'berth-api').spec.podMetricsEndpoints[0].tlsConfig;
    assert.deepEqual(await tlsConfig(), { serverName: 'berth-api.berth-system.svc' });
    assert.deepEqual(
      await tlsConfig(
        'metrics.podMonitor.apiTlsConfig.serverName=x',
        'metrics.podMonitor.apiTlsConfig.insecureSkipVerify=true',
      ),
      {
        serverName: 'x',
        insecureSkipVerify: true,
      },
    );
  });

  test('give it the limits of the values, whose defaults are its own', async () => {
    const { BERTH_API_PORT: _, BERTH_API_SHUTDOWN_DELAY: __, ...defaults } = environment(await render());
    assert.deepEqual(parseConfig(apiConfig, defaults), parseConfig(apiConfig, {}));
    const values = {
      requests: 11,
      waits: 12,
      streams: 13,
      contents: 18,
      commands: 20,
      transfers: 21,
      ports: 22,
      bytes: '19Mi',
      callerShare: 14,
      callerRate: 15,
      callerBurst: 16,
      stallTimeout: '17s',
    };
    const sets = Object.entries(values).map(([name, value]) => `api.limits.${name}=${value}`);
    const config = parseConfig(apiConfig, environment(await render(...sets)));
    assert.deepEqual(
      [
        ...[config.BERTH_API_MAX_REQUESTS, config.BERTH_API_MAX_WAITS, config.BERTH_API_MAX_STREAMS],
        ...[config.BERTH_API_CALLER_SHARE, config.BERTH_API_CALLER_RATE, config.BERTH_API_CALLER_BURST],
        ...[config.BERTH_API_STALL_TIMEOUT, config.BERTH_API_MAX_CONTENTS, config.BERTH_API_MAX_BYTES],
        ...[config.BERTH_API_MAX_COMMANDS, config.BERTH_API_MAX_TRANSFERS, config.BERTH_API_MAX_PORTS],
      ],
      [11, 12, 13, 14, 15, 16, 17_000, 18, 19 * 1024 * 1024, 20, 21, 22],
    );
  });
});
