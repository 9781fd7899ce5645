import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { parseManifest } from '../../../../cli/create/manifest.ts';
import { refuseConflicts } from '../../../../cli/create/manifest-flags.ts';

const SESSION = 'apiVersion: berth.dev/v1alpha1\nkind: Session\nmetadata: {name: notes}\nspec: {turns: One}\n';
const TURN = 'apiVersion: berth.dev/v1alpha1\nkind: Turn\nmetadata: {name: t}\nspec: {session: notes, input: [1]}\n';
const parsed = (text: string) => parseManifest(text, '-f x.yaml');

describe('a manifest', () => {
  test('is a Session, a Turn or both, in YAML, JSON or a List', async () => {
    const session = { name: 'notes', metadata: {}, spec: { turns: 'One', class: 'default' } };
    const turn = { name: 't', metadata: {}, spec: { session: 'notes', input: [1] } };
    assert.deepEqual(await parsed(SESSION), { session });
    assert.deepEqual(await parsed(TURN), { turn });
    assert.deepEqual(await parsed(`${SESSION}---\n${TURN}---\n`), { session, turn });
    const object = { apiVersion: 'berth.dev/v1alpha1', kind: 'Turn', metadata: { name: 't' }, spec: turn.spec };
    assert.deepEqual(await parsed(JSON.stringify(object)), { turn });
    assert.deepEqual(await parsed(JSON.stringify({ kind: 'List', items: [object] })), { turn });
  });
  test('keeps labels and annotations, and nothing that the API server adds', async () => {
    const metadata =
      '{name: notes, namespace: team, labels: {a: b}, annotations: {c: d}, uid: x, resourceVersion: "1"}';
    assert.deepEqual(await parsed(SESSION.replace('{name: notes}', metadata)), {
      namespace: 'team',
      session: {
        name: 'notes',
        metadata: { labels: { a: 'b' }, annotations: { c: 'd' } },
        spec: { turns: 'One', class: 'default' },
      },
    });
  });
  test('keeps integers of 64 bits exactly, and refuses numbers that would be rounded', async () => {
    const { turn } = await parsed(TURN.replace('[1]', '{id: 9007199254740993, float: 0.5}'));
    assert.equal(JSON.stringify(turn?.spec.input), '{"id":9007199254740993,"float":0.5}');
    await assert.rejects(
      parsed(TURN.replace('[1]', '[0.12345678901234567890]')),
      /cannot be kept exactly.*as a string/,
    );
  });
  const refused: [what: string, text: string, message: RegExp][] = [
    ['nothing', '---\n', /-f x\.yaml holds no object; write a Session or a Turn/],
    ['a text', 'hello', /holds something that is no object/],
    ['what is no YAML', 'a: b: c', /is neither YAML nor JSON: .*line 1, column 4/],
    [
      'another kind',
      'apiVersion: v1\nkind: Pod\nspec: {}\n',
      /Pod of apiVersion v1 is not created by berth.*kubectl create/,
    ],
    ['another version', SESSION.replace('v1alpha1', 'v9'), /Session of apiVersion berth\.dev\/v9/],
    ['an object without a spec', SESSION.replace(/spec.*/, ''), /Session has no spec/],
    ['a field beside the spec', `${SESSION}specs: {}\n`, /a field "specs", which no Session has/],
    ['a name that is none', SESSION.replace('notes', 'My_Notes'), /metadata\.name: a name is a DNS label/],
    ['two Sessions', `${SESSION}---\n${SESSION}`, /holds two Sessions/],
    [
      'a Turn of another session',
      `${SESSION}---\n${TURN.replace('session: notes', 'session: a')}`,
      /of session a, and the/,
    ],
    ['a Turn of no session', TURN.replace('session: notes, ', ''), /spec\.session of the Turn has to name/],
    [
      'two inputs',
      `${SESSION.replace('One', 'One, input: 1')}---\n${TURN}`,
      /spec\.input of the Session and of the Turn/,
    ],
    [
      'two namespaces',
      [SESSION, TURN].map((text, i) => text.replace('{name', `{namespace: n${i}, name`)).join('---\n'),
      /two namespaces, n0 and n1/,
    ],
  ];
  for (const [what, text, message] of refused) {
    test(`is refused: ${what}`, async () => {
      await assert.rejects(parsed(text), { exitCode: 2, message });
    });
  }
  test('refuses flags that say the same, by the flag and the field', async () => {
    const manifest = await parsed(`${SESSION}---\n${TURN}`);
    const conflicts: [object, RegExp][] = [
      [{ image: 'x' }, /--image and -f are both given; leave --image out and set spec\.image in the manifest/],
      [{ envFromSecret: ['A=b/c'] }, /--env-from-secret .* set spec\.agent\.env/],
      [{ cpu: '1' }, /--cpu .* set spec\.resources\.limits\.cpu/],
      [{ text: 'a' }, /--text .* set spec\.input/],
      [{ timeout: '1m' }, /--timeout .* set spec\.timeout/],
      [{ attempts: 2 }, /--attempts .* set spec\.retry/],
      [{ name: 'other' }, /the name other and metadata\.name notes in the manifest differ/],
    ];
    for (const [flags, message] of conflicts) assert.throws(() => refuseConflicts([], flags, manifest), { message });
    assert.throws(() => refuseConflicts(['true'], {}, manifest), /-- PROGRAM and -f are both given/);
    assert.throws(() => refuseConflicts([], { namespace: 'a' }, { ...manifest, namespace: 'b' }), /differ; leave one/);
    refuseConflicts([], { name: 'notes' }, manifest);
    refuseConflicts([], { text: 'a', timeout: '1m' }, await parsed(SESSION));
  });
});
