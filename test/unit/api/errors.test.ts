import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { fieldErrors, toProblem } from '../../../api/errors.ts';
import { PROBLEMS, Problem, problemSchema } from '../../../api/problems.ts';
import { runCreate, sessionCreate } from '../../../api/schemas.ts';
import { ApiError, TransportError } from '../../../core/kube/errors.ts';
import { StoreMissingError } from '../../../core/store/store.ts';

const answer = (code: number, reason: string) => new ApiError({ code, reason, message: 'said the cluster' }, 2500);

describe('problems', () => {
  const cases: [string, unknown, string][] = [
    ['a 403 of the cluster', answer(403, 'Forbidden'), 'Forbidden'],
    ['a 404 of the cluster', answer(404, 'NotFound'), 'NotFound'],
    ['a taken name', answer(409, 'AlreadyExists'), 'AlreadyExists'],
    ['a conflict', answer(409, 'Conflict'), 'Conflict'],
    ['an object that is too large', answer(413, 'RequestEntityTooLarge'), 'BodyTooLarge'],
    [
      'an object that is too large for etcd',
      new ApiError({ code: 500, reason: 'InternalError', message: 'etcdserver: request is too large' }),
      'BodyTooLarge',
    ],
    ['an object that is not valid', answer(422, 'Invalid'), 'Invalid'],
    ['an overloaded cluster', answer(429, 'TooManyRequests'), 'ClusterUnavailable'],
    ['a fault of the cluster', answer(500, 'InternalError'), 'ClusterUnavailable'],
    ['no answer of the cluster', new TransportError('connection refused'), 'ClusterUnavailable'],
    ['lost data', new StoreMissingError('Blob x'), 'StoredDataMissing'],
    ['a problem', new Problem('NoLog', 'none'), 'NoLog'],
    ['anything else', new TypeError('secret detail'), 'Internal'],
    ['no error at all', undefined, 'Internal'],
  ];
  for (const [what, error, code] of cases) {
    test(`${what} is told as ${code}`, () => {
      const problem = toProblem(error);
      assert.equal(problem.code, code);
      assert.equal(problemSchema.parse(problem.toJSON()).status, PROBLEMS[problem.code][0]);
    });
  }

  test('unexpected errors are not shown', () => {
    assert.ok(!JSON.stringify(toProblem(new TypeError('secret detail'))).includes('secret'));
  });

  test('the wait that the cluster asks for is passed on in whole seconds', () => {
    assert.equal(toProblem(answer(429, 'TooManyRequests')).retryAfterSeconds, 3);
  });

  test('fields are named by their whole path, each unknown one by itself', () => {
    const parsed = sessionCreate.safeParse({ spec: { agent: { args: [1] }, x: 1, y: 2 } });
    assert.ok(parsed.error);
    const fields = fieldErrors(parsed.error).map(({ field }) => field);
    assert.deepEqual(fields, ['spec.agent.args[0]', 'spec.x', 'spec.y']);
  });

  test('a wrong type and a missing field are told in words of JSON', () => {
    const wrong = runCreate.safeParse({ spec: { agent: { command: 'x', env: {} } } });
    assert.ok(wrong.error);
    assert.deepEqual(fieldErrors(wrong.error), [
      { field: 'spec.agent.command', message: 'it must be of type array, not string' },
      { field: 'spec.agent.env', message: 'it must be of type array, not object' },
      { field: 'spec.input', message: 'it is missing' },
    ]);
  });
});
