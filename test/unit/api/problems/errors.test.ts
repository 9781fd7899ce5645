import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import * as z from 'zod';
import {
  approvalCreate,
  listQuery,
  runCreate,
  sessionCreate,
  suspendBody,
  turnCreate,
  waitQuery,
} from '../../../../api/openapi/schemas.ts';
import { fieldErrors, toProblem } from '../../../../api/problems/errors.ts';
import { PROBLEMS, Problem, problemSchema } from '../../../../api/problems/problems.ts';
import { ApiError, TransportError } from '../../../../core/kube/errors.ts';
import { StoreMissingError } from '../../../../core/store/store.ts';

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

  test('a NUL in what a process is given is refused by its field', () => {
    const agent = { command: ['cat', 'a\0'], args: ['\0'], resumeArgs: ['b\0c'], env: [{ name: 'A', value: '\0' }] };
    const parsed = sessionCreate.safeParse({ spec: { agent } });
    assert.ok(parsed.error);
    const message = 'must have no NUL character (\\u0000), which no process can be given';
    assert.deepEqual(
      fieldErrors(parsed.error),
      ['command[1]', 'args[0]', 'resumeArgs[0]', 'env[0].value'].map((field) => ({
        field: `spec.agent.${field}`,
        message,
      })),
    );
    assert.ok(sessionCreate.safeParse({ spec: { agent: { command: ['sh', '-c', 'a\nb\u0001'] } } }).success);
  });

  test('a limit, a choice, a time and a repeated parameter are told in words of JSON', () => {
    const told = (schema: z.ZodType, value: unknown, place?: 'Parameter') => {
      const parsed = schema.safeParse(value);
      assert.ok(parsed.error);
      return fieldErrors(parsed.error, place).map(({ message }) => message);
    };
    assert.deepEqual(
      [
        ...told(z.string().min(1), ''),
        ...told(z.string().min(2), ''),
        ...told(z.string().max(1), 'ab'),
        ...told(z.array(z.string()).min(1), []),
        ...told(z.array(z.string()).max(2), ['a', 'b', 'c']),
        ...told(z.int().min(1), 0),
        ...told(z.int32(), 2 ** 40),
        ...told(z.int(), 3.5),
        ...told(z.enum(['Many', 'One', 'None']), 'Two'),
        ...told(z.literal('v1'), 'v2'),
        ...told(z.iso.datetime(), 'yesterday'),
        ...told(z.string(), ['a', 'b'], 'Parameter'),
        ...told(z.string().regex(/^a/, 'must begin with a'), 'b'),
      ],
      [
        'it must not be empty',
        'it must have at least 2 characters',
        'it must have at most 1 character',
        'it must not be empty',
        'it must have at most 2 entries',
        'it must be at least 1',
        'it must be at most 2147483647',
        'it must be a whole number',
        'it must be "Many", "One" or "None"',
        'it must be "v1"',
        'it must be a time, for example 2026-01-31T12:00:00Z',
        'it is given more than once; give it once',
        'must begin with a',
      ],
    );
  });

  test('no schema of a request has a message in words of zod', () => {
    const values: unknown[] = [
      undefined,
      null,
      '',
      'x'.repeat(1e6),
      0,
      -1,
      1e300,
      0.5,
      true,
      [],
      {},
      ['x'.repeat(1e6)],
    ];
    assert.ok('agent' in spread(sessionCreate));
    for (const schema of [sessionCreate, runCreate, turnCreate, approvalCreate, suspendBody, listQuery, waitQuery]) {
      for (const key of Object.keys(spread(schema))) {
        for (const value of values) {
          for (const body of [{ [key]: value }, { spec: { [key]: value } }, { metadata: { [key]: value } }]) {
            const parsed = schema.safeParse(body);
            for (const { message } of parsed.error ? fieldErrors(parsed.error) : []) {
              assert.doesNotMatch(message, /expected|Invalid|Too /, JSON.stringify(Object.keys(body)));
            }
          }
        }
      }
    }
  });
});

/** Names of the fields of a schema and of its spec. */
const spread = (schema: z.ZodType): Record<string, unknown> => {
  const { shape = {} } = schema as unknown as { shape?: Record<string, z.ZodType> };
  const inner = (shape.spec as unknown as { def?: { innerType?: z.ZodType } } | undefined)?.def?.innerType;
  return { ...shape, ...((inner as unknown as { shape?: object } | undefined)?.shape ?? {}) };
};
