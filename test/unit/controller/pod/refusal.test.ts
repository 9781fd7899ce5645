import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { refusal } from '../../../../controller/pod/refusal.ts';
import { ApiError } from '../../../../core/kube/errors.ts';

const told = (message: string, code = 403, object?: string) =>
  refusal(new ApiError({ code, reason: code === 403 ? 'Forbidden' : 'Invalid', message }), object);

describe('a refused pod', () => {
  for (const words of [
    'pods "x" is forbidden: User "system:serviceaccount:berth:c" cannot create resource "pods" in API group "" in the namespace "t"',
    'networkpolicies.networking.k8s.io is forbidden: User "a" cannot create resource "networkpolicies"',
    'pods "x" is forbidden: error looking up service account t/default: serviceaccount "default" not found',
    'pods "x" is forbidden: status unknown for quota: q, resources: pods',
    'pods "x" is forbidden: not yet ready to handle request',
    'pods "x" is forbidden: unable to create pods at this time because there was an error enforcing limit ranges',
    'pods "x" is forbidden: etcdserver: leader changed',
  ]) {
    test(`is tried again for a while where the API server says: ${words}`, () => {
      const message = `The pod cannot be created: NetworkPolicy p: ${words}`;
      assert.deepEqual(told(words, 403, 'NetworkPolicy p'), { reason: 'StartFailed', message, passes: true });
    });
  }

  for (const [words, reason, code] of [
    [
      'pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=4, limited: pods=4',
      'QuotaExceeded',
      403,
    ],
    ['pods "x" is forbidden: violates PodSecurity "restricted:latest"', 'PodForbidden', 403],
    ['pods "x" is forbidden: failed quota: q: must specify limits.cpu', 'PodForbidden', 403],
    ['admission webhook "v.io" denied the request: x is forbidden: User "bob" cannot use image', 'PodForbidden', 403],
    ['Pod "x" is invalid: spec.containers: Required value', 'PodForbidden', 422],
  ] as const) {
    test(`is not where it says: ${words}`, () => {
      assert.deepEqual(told(words, code), { reason, message: words });
    });
  }

  test('is a failure like any other where the API server has one', () => {
    assert.deepEqual(told('etcd is down', 500), {
      reason: 'StartFailed',
      message: 'The pod cannot be created: etcd is down',
    });
  });
});
