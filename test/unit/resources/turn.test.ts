import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { customResourceDefinition, kinds } from '../../../core/resources/crd.ts';
import { turnSpec } from '../../../core/resources/turn.ts';
import type { Json } from '../../../local/apiserver/object.ts';
import { celErrors } from '../../../local/apiserver/validation/cel.ts';

const kind = kinds.find((each) => each.kind === 'Turn');
assert.ok(kind);
// biome-ignore lint/suspicious/noExplicitAny: a document
const { schema } = (customResourceDefinition(kind) as any).spec.versions[0];

const full = { session: 's', input: 1, timeout: '9s', retry: { maxAttempts: 2 }, cancel: false, requester: 'ann' };
const bare = { session: 's', cancel: false };

function changed(from: Json, to: Json): string[] {
  const turn = (spec: Json): Json => ({ metadata: { name: 't' }, spec });
  return celErrors(turn(to), schema.openAPIV3Schema, turn(from)).map(({ field, message }) => `${field}: ${message}`);
}

describe('the spec of a Turn', () => {
  const others = Object.keys(turnSpec.shape).filter((field) => !['cancel', 'input'].includes(field));
  const ONLY_CANCEL = ['spec: Invalid value: only cancel can change; create a new Turn'];

  test('has these fields', () => {
    assert.deepEqual(Object.keys(full).sort(), Object.keys(turnSpec.shape).sort());
  });

  for (const field of others) {
    test(`keeps ${field} as it is: it can be neither changed nor added nor removed`, () => {
      const value = full[field as keyof typeof full];
      const other = typeof value === 'object' ? { maxAttempts: 3 } : `${value}x`;
      assert.deepEqual(changed(full, { ...full, [field]: other }), ONLY_CANCEL);
      assert.deepEqual(changed(full, { ...full, [field]: other, cancel: true }), ONLY_CANCEL);
      if (field === 'session') return;
      assert.deepEqual(changed(bare, { ...bare, [field]: value }), ONLY_CANCEL);
      const { [field as 'timeout']: _, ...without } = full;
      assert.deepEqual(changed(full, without), ONLY_CANCEL);
    });
  }

  test('takes a cancellation, which cannot be taken back', () => {
    assert.deepEqual(changed(full, { ...full, cancel: true }), []);
    assert.deepEqual(changed(bare, { ...bare, cancel: true }), []);
    assert.deepEqual(changed({ ...full, cancel: true }, full), [
      'spec.cancel: Invalid value: a cancellation cannot be taken back; create a new Turn',
    ]);
  });
});
