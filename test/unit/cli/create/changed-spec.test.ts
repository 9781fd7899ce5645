import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { changedFields } from '../../../../cli/create/changed-spec.ts';
import { filesSource } from '../../../../cli/files/agent-files.ts';
import type { SessionSpec } from '../../../../core/resources/session.ts';

const spec = (own: Partial<SessionSpec>): SessionSpec => ({ class: 'default', suspend: false, turns: 'Many', ...own });
const A = { name: 'A', value: '1' };

describe('a change of a session', () => {
  test('sets nothing that it does not name', () => {
    assert.deepEqual(changedFields('notes', spec({ agent: { command: ['true'] } }), { env: [] }), {});
  });

  test('gives variables by name: one that is there takes the new value, others stay or are added', () => {
    const secret = { name: 'B', valueFrom: { secretKeyRef: { name: 'model', key: 'key' } } };
    const agent = { command: ['true'], env: [A, secret] };
    const env = [
      { name: 'B', value: '2' },
      { name: 'C', value: '3' },
    ];
    assert.deepEqual(changedFields('notes', spec({ agent }), { env }), {
      agent: { command: ['true'], env: [A, ...env] },
    });
  });

  test('puts new files where those of an earlier --with stood, and leaves other sources as they are', () => {
    const others = [{ configMap: 'notes-words' }, { inline: { 'a.json': '{}' } }, { configMap: 'notes-files' }];
    const [words, inline, plain] = others;
    const later = filesSource('notes', 'abc');
    const files = (present: object[], name = 'notes') =>
      changedFields(name, spec({ agent: { files: present } }), { env: [], files: later }).agent?.files;
    assert.deepEqual(files([words as object, filesSource('notes'), inline as object]), [words, later, inline]);
    assert.deepEqual(files([filesSource('notes', 'old'), inline as object]), [later, inline]);
    assert.deepEqual(files(others), [words, inline, plain, later]);
    assert.deepEqual(files([filesSource('other')]), [filesSource('other'), later]);
  });

  test('keeps the other limits and timeouts', () => {
    const resources = { requests: { cpu: '1' }, limits: { cpu: '2', memory: '1Gi' } };
    const given = spec({ resources, timeouts: { turn: '5m', idle: '1h' } });
    assert.deepEqual(changedFields('notes', given, { env: [], memory: '2Gi', idle: '15m', environment: 'tools' }), {
      environment: { name: 'tools' },
      resources: { requests: { cpu: '1' }, limits: { cpu: '2', memory: '2Gi' } },
      timeouts: { turn: '5m', idle: '15m' },
    });
  });
});
