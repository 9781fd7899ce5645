import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import {
  cpu,
  labels,
  limit,
  memory,
  type NamedObject,
  paths,
  session,
  severalObjects,
} from '../../../../cli/input/flags.ts';

describe('the value of a flag', () => {
  test('of CPU is a number of cores', () => {
    for (const text of ['2', '0.5', '500m']) assert.equal(cpu(text), text);
    for (const text of ['0', '0m', '2Gi', '-1', 'two', '']) assert.throws(() => cpu(text), /number of cores/, text);
  });
  test('of memory has a unit', () => {
    for (const text of ['512Mi', '2G', '1048576']) assert.equal(memory(text), text);
    for (const text of ['', '512MB', '-1Gi', '100m']) assert.throws(() => memory(text), /with a unit/, text);
    for (const text of ['512', '2k']) assert.throws(() => memory(text), /add a unit, for example 512Mi/, text);
  });
  test('of paths is no --, which the flag takes where no path is given', () => {
    assert.deepEqual(paths('b', paths('a')), ['a', 'b']);
    assert.throws(() => paths('--'), /needs a file or folder before the --/);
  });
  test('of a session is its name, also as -o name prints it and as kubectl takes it', () => {
    for (const text of [
      'notes',
      'session/notes',
      'sessions/notes',
      'session.berth.dev/notes',
      'sessions.berth.dev/notes',
    ])
      assert.equal(session(text), 'notes');
    for (const text of ['turn/notes', 'turn.berth.dev/notes']) assert.throws(() => session(text), /that is a turn/);
    assert.throws(
      () => session('environment.berth.dev/tools'),
      /that is an Environment; there are commands for it: env/,
    );
    for (const text of ['pod/notes', 'session.example.com/notes', '/notes', 'sessionx/notes'])
      assert.throws(() => session(text), /is no kind of Berth/, text);
    for (const text of ['', 'session/', 'session/a/b', 'My_Notes'])
      assert.throws(() => session(text), /DNS label/, text);
  });
  test('of an object is its type and name; a name alone is that of a session', () => {
    const all = ['a', 'sessions/b', 'turn.berth.dev/c', 'environment/d'];
    assert.deepEqual(
      all.reduce<NamedObject[]>((before, text) => severalObjects(text, before), []),
      [
        { kind: 'session', name: 'a' },
        { kind: 'session', name: 'b' },
        { kind: 'turn', name: 'c' },
        { kind: 'environment', name: 'd' },
      ],
    );
    assert.throws(() => severalObjects('pod/a'), /is no kind of Berth/);
    assert.throws(() => severalObjects('turn/'), /DNS label/);
  });
  test('of a label is a key and a value of Kubernetes, each key once', () => {
    const given = ['team=blue', 'example.com/a.B_c=', 'x=1.0'].reduce((before, text) => labels(text, before), {});
    assert.deepEqual(given, { team: 'blue', 'example.com/a.B_c': '', x: '1.0' });
    for (const text of ['team', '=blue', '']) assert.throws(() => labels(text), /a key and a value/, text);
    for (const text of ['-a=1', 'a b=1', 'UP/a=1', '/a=1', 'a/=1', 'a/b/c=1', `${'k'.repeat(64)}=1`])
      assert.throws(() => labels(text), /no key of a label/, text);
    for (const text of ['a=-', 'a=b c', 'a=b=c', `a=${'v'.repeat(64)}`])
      assert.throws(() => labels(text), /no value of a label/, text);
    for (const text of ['berth.dev/map=1', 'x.berth.dev/y=1']) assert.throws(() => labels(text), /Berth’s own/, text);
    assert.throws(() => labels('a=2', { a: '1' }), /a is given twice/);
  });
  test('of a limit may be 0', () => {
    assert.deepEqual([limit('0'), limit('0s'), limit('1m30s')], [0, 0, 90_000]);
    for (const text of ['1', '-1s', '']) assert.throws(() => limit(text), /is not a duration/, text);
  });
});
