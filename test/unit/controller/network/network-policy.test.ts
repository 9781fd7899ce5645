import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { METADATA_SERVICES } from '../../../../controller/network/metadata-services.ts';
import { networkPolicy } from '../../../../controller/network/policy.ts';
import { proxyVariables } from '../../../../controller/settings/variables.ts';
import { sessionClassSpec } from '../../../../core/resources/sessionclass.ts';
import { CHECKOUT } from '../../../support/pages.ts';

const specOf = (network: object | undefined, name = 'small') => {
  const { sandbox } = sessionClassSpec.parse({ sandbox: network ? { network } : {} });
  return networkPolicy('team', name, sandbox?.network);
};
const egress = (network: object) => specOf(network).spec.egress ?? [];

const DNS = {
  to: [
    {
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'kube-system' } },
      podSelector: { matchLabels: { 'k8s-app': 'kube-dns' } },
    },
  ],
  ports: [
    { port: 53, protocol: 'UDP' },
    { port: 53, protocol: 'TCP' },
  ],
};

describe('the NetworkPolicy of a class', () => {
  test('lets nothing in and, unless the class says more, nothing out', () => {
    for (const network of [undefined, {}, { mode: 'None' }]) {
      assert.deepEqual(specOf(network), {
        apiVersion: 'networking.k8s.io/v1',
        kind: 'NetworkPolicy',
        metadata: {
          name: 'berth-small',
          namespace: 'team',
          labels: { 'app.kubernetes.io/managed-by': 'berth', 'berth.dev/network': 'small' },
        },
        spec: {
          podSelector: { matchLabels: { 'berth.dev/network': 'small' } },
          policyTypes: ['Ingress', 'Egress'],
        },
      });
    }
  });

  test('lets nothing in whatever it lets out', () => {
    for (const network of [
      { mode: 'Open' },
      { mode: 'AllowList' },
      { mode: 'AllowList', allow: [{ cidr: '0.0.0.0/0' }] },
    ]) {
      const { policyTypes, ...rest } = specOf(network).spec;
      assert.deepEqual(policyTypes, ['Ingress', 'Egress']);
      assert.ok(!('ingress' in rest));
    }
  });

  test('Open is every address and pod but the metadata services of clouds, of whose addresses it is the DNS servers alone', () => {
    assert.deepEqual(egress({ mode: 'Open' }), [
      {
        to: [
          {
            ipBlock: {
              cidr: '0.0.0.0/0',
              except: [
                '169.254.169.254/32',
                '169.254.169.252/32',
                '169.254.170.2/32',
                '169.254.170.23/32',
                '168.63.129.16/32',
                '100.100.100.200/32',
                '100.96.0.96/32',
                '100.80.80.80/32',
                '169.254.0.23/32',
                '169.254.42.42/32',
              ],
            },
          },
          {
            ipBlock: {
              cidr: '::/0',
              except: [
                'fd00:ec2::254/128',
                'fd00:ec2::23/128',
                'fd20:ce::254/128',
                'fd00:100::100:200/128',
                'fd00:42::42/128',
                'fd00:c1::a9fe:a9fe/128',
                'fd00:a9fe:a9fe::1/128',
              ],
            },
          },
          { namespaceSelector: {} },
        ],
      },
      {
        to: [
          { ipBlock: { cidr: '169.254.169.254/32' } },
          { ipBlock: { cidr: '168.63.129.16/32' } },
          { ipBlock: { cidr: 'fd20:ce::254/128' } },
        ],
        ports: DNS.ports,
      },
    ]);
  });

  test('docs/network.md lists what Open excepts, and where DNS stays open', () => {
    const page = readFileSync(join(CHECKOUT, 'docs/network.md'), 'utf8');
    const rows = [...page.matchAll(/^\| `([\da-f.:]+)` \| (.+) \| (port 53)? *\|$/gm)];
    assert.deepEqual(
      rows.map(([, address, cloud, dns]) => ({ address, cloud, hasDns: dns !== undefined })),
      METADATA_SERVICES,
    );
  });

  test('an allow-list is its entries and, unless it says otherwise, the cluster’s DNS', () => {
    const allow = [
      {
        cidr: '10.0.0.0/8',
        except: ['10.1.0.0/16'],
        ports: [{ port: 443 }, { port: 8000, endPort: 8010, protocol: 'UDP' }],
      },
      {
        namespaceSelector: { matchLabels: { team: 'a' } },
        podSelector: { matchExpressions: [{ key: 'app', operator: 'Exists' }] },
      },
      { podSelector: {} },
    ];
    const rules = [
      {
        to: [{ ipBlock: { cidr: '10.0.0.0/8', except: ['10.1.0.0/16'] } }],
        ports: [
          { port: 443, protocol: 'TCP' },
          { port: 8000, endPort: 8010, protocol: 'UDP' },
        ],
      },
      {
        to: [
          {
            namespaceSelector: { matchLabels: { team: 'a' } },
            podSelector: { matchExpressions: [{ key: 'app', operator: 'Exists' }] },
          },
        ],
      },
      { to: [{ podSelector: {} }] },
    ];
    assert.deepEqual(egress({ mode: 'AllowList', allow }), [DNS, ...rules]);
    assert.deepEqual(egress({ mode: 'AllowList', allow, dns: false }), rules);
    assert.deepEqual(egress({ mode: 'AllowList' }), [DNS]);
  });

  test('a proxy is allowed by its address, or by the pods that it is', () => {
    const proxied = (proxy: object) => egress({ mode: 'AllowList', dns: false, proxy });
    const tcp = (port: number) => ({ ports: [{ port, protocol: 'TCP' }] });
    const table: [object, object][] = [
      [{ url: 'http://10.0.0.5:3128' }, { to: [{ ipBlock: { cidr: '10.0.0.5/32' } }], ...tcp(3128) }],
      [{ url: 'https://10.0.0.5/' }, { to: [{ ipBlock: { cidr: '10.0.0.5/32' } }], ...tcp(443) }],
      [{ url: 'http://[fd00::5]' }, { to: [{ ipBlock: { cidr: 'fd00::5/128' } }], ...tcp(80) }],
      [
        { url: 'http://proxy.egress.svc:80', podSelector: { matchLabels: { app: 'proxy' } }, ports: [{ port: 3128 }] },
        { to: [{ podSelector: { matchLabels: { app: 'proxy' } } }], ...tcp(3128) },
      ],
      [
        { url: 'http://proxy:3128', cidr: '10.9.0.0/24' },
        { to: [{ ipBlock: { cidr: '10.9.0.0/24' } }], ...tcp(3128) },
      ],
    ];
    for (const [proxy, rule] of table) assert.deepEqual(proxied(proxy), [rule], JSON.stringify(proxy));
  });

  test('a requirement of a selector keeps its single value, and has none where it needs none', () => {
    const podSelector = {
      matchExpressions: [
        { key: 'app', operator: 'In', values: ['proxy'] },
        { key: 'ready', operator: 'Exists' },
      ],
    };
    const [rule] = egress({ mode: 'AllowList', dns: false, allow: [{ podSelector }] });
    assert.deepEqual(rule?.to, [{ podSelector }]);
  });

  test('has a label and a name that Kubernetes takes, also for a class with the longest name', () => {
    const long = `${'a'.repeat(62)}.${'b'.repeat(62)}.${'c'.repeat(100)}`;
    const [one, other] = [specOf(undefined, long), specOf(undefined, `${long}d`)].map(({ metadata }) => metadata);
    const key = one?.labels?.['berth.dev/network'] ?? '';
    assert.match(key, /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/);
    assert.equal(key.length, 63);
    assert.equal(one?.name, `berth-${key}`);
    assert.notEqual(one?.name, other?.name);
    const dotted = specOf(undefined, `${'a'.repeat(45)}.${'b'.repeat(30)}`).metadata.name;
    assert.match(dotted, /^([a-z0-9]([-a-z0-9]*[a-z0-9])?)(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/);
  });
});

describe('a proxy', () => {
  test('is in the environment in both spellings, and what is local is reached without it', () => {
    const spec = sessionClassSpec.parse({
      sandbox: { network: { mode: 'AllowList', proxy: { url: 'http://10.0.0.5:3128', noProxy: ['.svc'] } } },
    });
    const variables = Object.fromEntries(proxyVariables(spec).map(({ name, value }) => [name, value]));
    assert.deepEqual(variables, {
      HTTP_PROXY: 'http://10.0.0.5:3128',
      http_proxy: 'http://10.0.0.5:3128',
      HTTPS_PROXY: 'http://10.0.0.5:3128',
      https_proxy: 'http://10.0.0.5:3128',
      NO_PROXY: 'localhost,127.0.0.1,::1,.svc',
      no_proxy: 'localhost,127.0.0.1,::1,.svc',
    });
    assert.deepEqual(proxyVariables(sessionClassSpec.parse({})), []);
  });
});
