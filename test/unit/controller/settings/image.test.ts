import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { imageSettings } from '../../../../controller/settings/image.ts';
import { customResourceDefinition, kinds } from '../../../../core/resources/crd.ts';
import { type SessionClassSpec, sessionClassSpec } from '../../../../core/resources/sessionclass.ts';
import { celErrors } from '../../../../local/apiserver/validation/cel.ts';
import type { Schema } from '../../../../local/apiserver/validation/schema.ts';
import { aSession, aWorld } from '../../../support/world.ts';

/** Image of a session of a class with this spec, or the message of the problem. */
function imageOf(spec: Partial<SessionClassSpec>, session: object = {}, installation: object = {}): string {
  const settings = imageSettings(aSession({ spec: session }).spec, sessionClassSpec.parse(spec), {
    ...aWorld().installation,
    ...installation,
  });
  return 'reason' in settings ? settings.message : settings.image;
}

describe('the image of a session', () => {
  test('is the session’s, else the class’s, else the runner image that the class chooses', () => {
    assert.equal(imageOf({}), 'runner:1');
    assert.equal(imageOf({ runnerImage: 'Default' }), 'runner:1');
    assert.equal(imageOf({ runnerImage: 'Python' }), 'python:1');
    assert.equal(imageOf({ image: 'own:2' }), 'own:2');
    assert.equal(imageOf({ runnerImage: 'Python' }, { image: 'session:3' }), 'session:3');
  });

  test('is a problem that names the field where the installation has no runner image with Python', () => {
    const message = imageOf({ runnerImage: 'Python' }, {}, { pythonRunnerImage: undefined });
    assert.match(message, /^spec\.runnerImage of the SessionClass: .*BERTH_PYTHON_RUNNER_IMAGE/);
    assert.equal(imageOf({ runnerImage: 'Python' }, { image: 'a:1' }, { pythonRunnerImage: undefined }), 'a:1');
  });

  test('is not chosen twice: runnerImage beside an image or with another runner is refused', () => {
    const kind = kinds.find(({ kind }) => kind === 'SessionClass')!;
    // biome-ignore lint/suspicious/noExplicitAny: a document
    const schema = (customResourceDefinition(kind) as any).spec.versions[0].schema.openAPIV3Schema as Schema;
    const errors = (spec: object) => celErrors({ spec: sessionClassSpec.parse(spec) }, schema, undefined);
    assert.deepEqual(errors({ runnerImage: 'Python' }), []);
    assert.match(JSON.stringify(errors({ runnerImage: 'Python', image: 'a:1' })), /leave runnerImage out/);
    const injected = { runner: 'Injected', image: 'a:1', runnerImage: 'Default' };
    assert.match(JSON.stringify(errors(injected)), /leave runnerImage out/);
  });
});
