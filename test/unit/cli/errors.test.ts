import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { describeError, failed, Interrupted, refused, unreachable } from '../../../cli/errors.ts';
import { KubeConfigError } from '../../../core/kube/connection.ts';
import { ApiError, TransportError } from '../../../core/kube/errors.ts';

const api = (code: number, reason: string, message: string, details = {}) =>
  new ApiError({ code, reason, message, details });

describe('the exit code of an error', () => {
  const cases: [what: string, error: Error, exitCode: number, text: RegExp][] = [
    ['a failure is 1', failed('no'), 1, /^no$/],
    ['a refusal is 2', refused('no'), 2, /^no$/],
    ['no cluster is 3', unreachable('no'), 3, /^no$/],
    ['Ctrl-C is 130', new Interrupted('SIGINT'), 130, /interrupted/],
    ['a termination is 143', new Interrupted('SIGTERM'), 143, /interrupted/],
    ['a closed terminal is 129', new Interrupted('SIGHUP'), 129, /interrupted/],
    [
      'a cluster without an answer is 3, with how to start one',
      new TransportError('ECONNREFUSED'),
      3,
      /berth local up/,
    ],
    ['no kubeconfig is 3, with how to start one', new KubeConfigError('none'), 3, /berth local up/],
    ['wrong credentials are 3', api(401, 'Unauthorized', 'Unauthorized'), 3, /does not know who you are/],
    ['a missing right is 2', api(403, 'Forbidden', 'sessions is forbidden', { name: 'x' }), 2, /is forbidden/],
    ['a cluster without Berth is 3', api(404, 'NotFound', 'the server could not find it'), 3, /not installed/],
    ['a missing object is 2', api(404, 'NotFound', 'turns "x" not found', { name: 'x' }), 2, /turns "x" not found/],
    ['a taken name is 2', api(409, 'AlreadyExists', '"x" already exists', { name: 'x' }), 2, /already exists/],
    ['an overloaded cluster is 3', api(429, 'TooManyRequests', 'slow'), 3, /slow/],
    ['a broken cluster is 3', api(500, 'InternalError', 'etcd'), 3, /etcd/],
    ['anything else is 1, with where it came from', new TypeError('bug'), 1, /TypeError: bug\n.*at /s],
  ];
  for (const [what, error, exitCode, text] of cases) {
    test(what, () => {
      const told = describeError(error, { name: 'berth' });
      assert.equal(told.exitCode, exitCode);
      assert.match(told.message, text);
    });
  }
  test('every field that the API server refuses has its own line', () => {
    const causes = [
      { field: 'spec.agent.env[0].name', message: 'must be a variable name' },
      { field: 'spec.image', message: 'too long' },
    ];
    const error = api(422, 'Invalid', 'Session.berth.dev "x" is invalid: [spec.agent: a, spec.image: b]', { causes });
    assert.deepEqual(describeError(error, { name: 'berth' }), {
      exitCode: 2,
      message:
        'Session.berth.dev "x" is invalid:\n  spec.agent.env[0].name: must be a variable name\n  spec.image: too long',
    });
  });
});
