import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { humanDuration } from '../../../core/table/age.ts';
import { compileJsonPath } from '../../../core/table/jsonpath.ts';
import { compareVersions } from '../../../local/apiserver/discovery/discovery.ts';
import { decodeProtobuf } from '../../../local/apiserver/http/protobuf.ts';
import { parseResourcePath } from '../../../local/apiserver/http/request.ts';
import { viewOf } from '../../../local/apiserver/http/table.ts';
import { builtinResources } from '../../../local/apiserver/registry/builtin/index.ts';
import { Catalogue } from '../../../local/apiserver/registry/catalogue.ts';
import { labelErrors, qualifiedNameErrors, subdomainErrors } from '../../../local/apiserver/registry/names.ts';
import { matchesFormat, parseDuration } from '../../../local/apiserver/validation/formats.ts';
import { parseQuantity } from '../../../local/apiserver/validation/quantity.ts';

test('durations are shown as kubectl shows them', () => {
  const s = 1000;
  const m = 60 * s;
  const h = 60 * m;
  const d = 24 * h;
  for (const [ms, shown] of [
    [-5 * s, '<invalid>'],
    [0, '0s'],
    [119 * s, '119s'],
    [2 * m, '2m'],
    [2 * m + 5 * s, '2m5s'],
    [10 * m, '10m'],
    [179 * m, '179m'],
    [3 * h + 2 * m, '3h2m'],
    [8 * h, '8h'],
    [47 * h, '47h'],
    [2 * d, '2d'],
    [3 * d + 5 * h, '3d5h'],
    [8 * d, '8d'],
    [700 * d, '700d'],
    [2 * 365 * d, '2y'],
    [2 * 365 * d + 3 * d, '2y3d'],
    [9 * 365 * d, '9y'],
  ] as const) {
    assert.equal(humanDuration(ms), shown);
  }
});

test('JSON paths of printer columns find what they name', () => {
  const object = {
    spec: { a: 'x', list: [1, 2], 'dotted.name': 'd' },
    status: {
      conditions: [
        { type: 'Ready', status: 'True' },
        { type: 'Other', n: 3 },
      ],
    },
  };
  for (const [path, found] of [
    ['.spec.a', ['x']],
    ['.spec.list[1]', [2]],
    ['.spec.list[*]', [1, 2]],
    ['.spec.missing.deep', []],
    ["['spec']['dotted.name']", ['d']],
    ['.spec.dotted\\.name', ['d']],
    ['.status.conditions[?(@.type=="Ready")].status', ['True']],
    [".status.conditions[?(@.type=='None')].status", []],
    ['.status.conditions[?(@.n==3)].type', ['Other']],
    ['.spec.constructor', []],
  ] as const) {
    assert.deepEqual(compileJsonPath(path)(object), found, path);
  }
  assert.throws(() => compileJsonPath('.a[?(@.b > 3)]'), /unsupported JSONPath/);
});

test('quantities and durations are read as Kubernetes reads them', () => {
  for (const [text, value] of [
    ['1', 1],
    ['1.5', 1.5],
    ['500m', 0.5],
    ['1Ki', 1024],
    ['2Gi', 2147483648],
    ['1k', 1000],
    ['1e3', 1000],
    ['-1M', -1e6],
    ['', undefined],
    ['1kb', undefined],
    ['.', undefined],
  ] as const) {
    assert.equal(parseQuantity(text), value, text);
  }
  for (const [text, value] of [
    ['0', 0],
    ['1h30m', 5_400_000],
    ['1.5s', 1500],
    ['-2m', -120_000],
    ['100ms', 100],
    ['1d', undefined],
    ['5', undefined],
    ['', undefined],
  ] as const) {
    assert.equal(parseDuration(text), value, text);
  }
});

test('formats are checked as the API server checks them, unknown ones not at all', () => {
  for (const [format, good, bad] of [
    ['date-time', '2026-01-01T00:00:00.5+02:00', '2026-13-01T00:00:00Z'],
    ['date', '2026-01-31', '31.1.2026'],
    ['byte', 'YWI=', 'a'],
    ['uuid', '0f9f1e7e-003e-4c13-926f-4465376caeb2', '0f9f1e7e'],
    ['ipv4', '127.0.0.1', '::1'],
    ['ipv6', '::1', '127.0.0.1'],
    ['cidr', '10.0.0.0/8', '10.0.0.0/40'],
    ['uri', 'https://example.com', 'no uri'],
    ['email', 'a@b.c', 'a b@c'],
  ] as const) {
    assert.ok(matchesFormat(format, good), `${format}: ${good}`);
    assert.ok(!matchesFormat(format, bad), `${format}: ${bad}`);
  }
  assert.ok(matchesFormat('something-else', 'x'));
});

test('names are told what is wrong with them', () => {
  assert.deepEqual(labelErrors('my-name'), []);
  assert.deepEqual(labelErrors('a'.repeat(64)), ['must be no more than 63 bytes']);
  assert.match(labelErrors('a.b')[0] as string, /^a lowercase RFC 1123 label must consist/);
  assert.deepEqual(subdomainErrors('a.b-c.d'), []);
  assert.equal(subdomainErrors('A'.repeat(300)).length, 2);
  assert.deepEqual(qualifiedNameErrors('berth.dev/session'), []);
  assert.deepEqual(qualifiedNameErrors('/x'), ['prefix part must be non-empty']);
  assert.match(qualifiedNameErrors('a/b/c')[0] as string, /^a qualified name must consist/);
  assert.match(qualifiedNameErrors('Not A Domain/x')[0] as string, /^prefix part a lowercase RFC 1123 subdomain/);
});

test('stable versions come before beta before alpha, higher ones first', () => {
  const versions = ['v1alpha1', 'v1', 'v2beta1', 'v10', 'v2', 'v1beta2', 'v1beta10', 'odd'];
  assert.deepEqual(
    versions.toSorted(compareVersions),
    ['v10', 'v2', 'v1', 'odd', 'v2beta1', 'v1beta10', 'v1beta2', 'v1alpha1'].toSorted((a, b) => compareVersions(a, b)),
  );
  assert.deepEqual(['v1alpha1', 'v1beta1', 'v1', 'v2'].toSorted(compareVersions), ['v2', 'v1', 'v1beta1', 'v1alpha1']);
});

describe('requests', () => {
  const catalogue = new Catalogue(builtinResources);
  for (const [path, expected] of [
    ['/api/v1/namespaces', { plural: 'namespaces', name: undefined, namespace: undefined }],
    ['/api/v1/namespaces/a', { plural: 'namespaces', name: 'a', namespace: undefined }],
    ['/api/v1/namespaces/a/status', { plural: 'namespaces', name: 'a', namespace: undefined, subresource: 'status' }],
    ['/api/v1/namespaces/a/pods', { plural: 'pods', name: undefined, namespace: 'a' }],
    ['/api/v1/namespaces/a/pods/b/log', { plural: 'pods', name: 'b', namespace: 'a', subresource: 'log' }],
    ['/api/v1/pods', { plural: 'pods', name: undefined, namespace: undefined }],
    [
      '/apis/berth.dev/v1alpha1/namespaces/a/turns/t',
      { group: 'berth.dev', plural: 'turns', name: 't', namespace: 'a' },
    ],
    ['/apis/rbac.authorization.k8s.io/v1/clusterroles/a%3Ab', { plural: 'clusterroles', name: 'a:b' }],
  ] as const) {
    test(`the path ${path} is taken apart`, () => {
      const parsed = parseResourcePath(path, catalogue);
      for (const [key, value] of Object.entries(expected)) {
        assert.equal(parsed?.[key as keyof typeof parsed], value, key);
      }
    });
  }

  test('paths that are not of objects are none', () => {
    for (const path of ['/', '/api', '/api/v1', '/apis', '/apis/a', '/apis/a/v1', '/version', '/metrics/x']) {
      assert.equal(parseResourcePath(path, catalogue), undefined, path);
    }
  });

  test('the first known form of the Accept header counts', () => {
    const none = new URLSearchParams();
    assert.deepEqual(viewOf('application/json;as=Table;v=v1;g=meta.k8s.io,application/json', none), {
      as: 'table',
      include: 'Metadata',
      headers: true,
    });
    assert.deepEqual(viewOf('application/json', none), { as: 'object' });
    assert.deepEqual(viewOf(undefined, none), { as: 'object' });
    assert.deepEqual(viewOf('application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1', none), { as: 'metadata' });
  });
});

describe('protobuf', () => {
  const varint = (n: number): number[] => (n < 128 ? [n] : [(n & 127) | 128, ...varint(n >>> 7)]);
  const bytes = (field: number, content: Uint8Array | string) => {
    const raw = Buffer.from(content as string);
    return Buffer.concat([Buffer.from([...varint((field << 3) | 2), ...varint(raw.length)]), raw]);
  };
  const envelope = (kind: string, ...raw: Buffer[]) =>
    Buffer.concat([
      Buffer.from('k8s\0'),
      bytes(1, Buffer.concat([bytes(1, 'v1'), bytes(2, kind)])),
      bytes(2, Buffer.concat(raw)),
    ]);

  test('encoded objects can be read, whatever strings they have', () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 1 }),
        fc.dictionary(fc.string(), fc.string(), { maxKeys: 4 }),
        (name, data) => {
          const entries = Object.entries(data).filter(([key]) => key !== '__proto__');
          const body = envelope(
            'ConfigMap',
            bytes(1, bytes(1, name)),
            ...entries.map(([key, value]) => bytes(2, Buffer.concat([bytes(1, key), bytes(2, value)]))),
          );
          assert.deepEqual(decodeProtobuf(body), {
            apiVersion: 'v1',
            kind: 'ConfigMap',
            metadata: { name },
            ...(entries.length > 0 ? { data: Object.fromEntries(entries) } : {}),
          });
        },
      ),
    );
  });

  test('strings of every length around the limits of a length’s own encoding are read', () => {
    for (const length of [1, 126, 127, 128, 129, 300, 16_383, 16_384]) {
      const name = 'x'.repeat(length);
      assert.deepEqual(decodeProtobuf(envelope('Namespace', bytes(1, bytes(1, name)))).metadata, { name });
    }
  });

  test('a body that ends too early is 400', () => {
    const whole = envelope('Namespace', bytes(1, bytes(1, 'name')));
    for (let missing = 1; missing < 'name'.length + 4; missing++) {
      assert.throws(() => decodeProtobuf(whole.subarray(0, whole.length - missing)), { code: 400 });
    }
  });

  test('any bytes behind the envelope of a kind are an object of that kind, or refused with 400 or 415', () => {
    let read = 0;
    let refused = 0;
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (noise) => {
        let object: unknown;
        try {
          object = decodeProtobuf(envelope('Secret', Buffer.from(noise)));
        } catch (error) {
          refused++;
          assert.ok([400, 415].includes((error as { code: number }).code), String(error));
          return;
        }
        read++;
        assert.equal((object as { kind?: string }).kind, 'Secret');
      }),
      { numRuns: 500 },
    );
    assert.ok(read > 0 && refused > 0, `${read} read, ${refused} refused`);
  });

  test('bytes that are no envelope are refused', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (noise) => {
        const body = Buffer.concat([Buffer.from('k8s\0'), Buffer.from(noise)]);
        assert.throws(
          () => decodeProtobuf(body),
          (error: { code?: number }) => error.code === 400 || error.code === 415,
        );
      }),
    );
  });
});
