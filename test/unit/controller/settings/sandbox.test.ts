import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { classProblem, limitsOf } from '../../../../controller/settings/sandbox.ts';
import { sessionClassSpec } from '../../../../core/resources/sessionclass.ts';

const STRICT = {
  memoryBytes: 1_073_741_824,
  cpuSeconds: 300,
  fileSizeBytes: 100_000_000,
  processes: 10,
  openFiles: 1024,
  coreBytes: 0,
};

describe('the limits of a session’s processes', () => {
  test('are those of Strict for tools: 1 GiB, 300 s, 100 MB, 10 processes, no core', () => {
    assert.deepEqual(limitsOf('Tools'), { ...STRICT, required: true });
    assert.deepEqual(limitsOf('Command', { preset: 'Strict' }), { ...STRICT, required: true });
  });

  test('are those of Agent otherwise: 1,024 processes, no core, nothing else', () => {
    const agent = { processes: 1024, coreBytes: 0, required: false };
    for (const driver of ['Command', 'Server', 'Shell'] as const) assert.deepEqual(limitsOf(driver, {}), agent);
    assert.deepEqual(limitsOf('Tools', { preset: 'Agent' }), agent);
  });

  test('are the class’s own where it has them, and must hold then', () => {
    const limits = { memory: '512Mi', cpuSeconds: 5, fileSize: '1k', processes: 3, openFiles: 9, core: '1Mi' };
    assert.deepEqual(limitsOf('Shell', { limits }), {
      memoryBytes: 512 * 2 ** 20,
      cpuSeconds: 5,
      fileSizeBytes: 1000,
      processes: 3,
      openFiles: 9,
      coreBytes: 2 ** 20,
      required: true,
    });
    assert.deepEqual(limitsOf('Tools', { limits: { processes: 64 } }), { ...STRICT, processes: 64, required: true });
  });
});

describe('a class that cannot work', () => {
  const problem = (spec: object) => classProblem(sessionClassSpec.parse(spec));

  test('names the pattern that cannot be searched for, and why', () => {
    assert.deepEqual(problem({ redact: ['acme-[0-9]{6}', 'id=.*'] }), {
      reason: 'ClassInvalid',
      message: 'spec.redact[1]: at character 5: "*" has no end; bound it, for example {1,200}',
    });
    assert.equal(problem({ redact: ['acme-[0-9]{6}'] }), undefined);
  });

  test('names a memory in which nothing starts', () => {
    assert.match(
      problem({ sandbox: { limits: { memory: '512' } } })?.message ?? '',
      /^spec\.sandbox\.limits\.memory: 512 /,
    );
    assert.equal(problem({ sandbox: { limits: { memory: '64Mi' } } }), undefined);
  });

  test('names a limit of artifacts that is more than can be stored', () => {
    assert.deepEqual(problem({ artifacts: { maxBytes: '17Mi' } }), {
      reason: 'ClassInvalid',
      message: 'spec.artifacts.maxBytes: 17Mi is more than the 16Mi that Berth can store',
    });
    assert.equal(problem({ artifacts: { maxBytes: '16Mi' } }), undefined);
  });
});
