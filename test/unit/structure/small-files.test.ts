import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'vitest';
import { targetsOf } from './imports.ts';

const ROOT = join(import.meta.dirname, '../../..');
const MAX_LINES = 30;

/** Files of at most 30 lines that one other file imports, and why each stands alone. */
const ALONE: Record<string, string> = {
  'api/auth/known-tokens.ts': 'a cache with a rule of its own: what it remembers of a token, and for how long',
  'cli/commands/shell.ts': 'each command of this folder stands in its file',
  'controller/act/make-room.ts': 'an action that has nothing in common with those of other files',
  'controller/act/read-files.ts': 'an action that has nothing in common with those of other files',
  'controller/caches/environments.ts': 'each kind of object of this folder stands in its file',
  'controller/decide/conditions/admitted.ts': 'each condition of this folder stands in its file',
  'controller/pools/pod-numbers.ts': 'the arithmetic of the numbers of a pool’s pods, tested alone',
  'controller/status/enterable.ts': 'each condition of this folder stands in its file',
  'controller/status/secrets-hidden.ts': 'each condition of this folder stands in its file',
  'core/frames/validate.ts':
    'the decoder, of 350 lines, is about the format of frames; this file is about their fields',
  'core/text/heuristics.ts': 'a table: the patterns with the exceptions of each',
  'local/apiserver/http/tokens.ts': 'each subresource of this folder stands in its file',
  'local/apiserver/registry/builtin/index.ts': 'the list of what the folder has',
  'runner/enter/ports.ts': 'what each kind of visit is served with stands in its file',
};

test('a file of at most 30 lines that one file imports has a reason to stand alone', () => {
  const files = globSync('{api,cli,clients,controller,core,local,runner}/**/*.ts', { cwd: ROOT });
  const imports = files.flatMap((file) => [...new Set(targetsOf(file))]);
  const small = files.filter((file) => imports.filter((target) => target === file).length === 1 && isSmall(file));
  assert.ok(files.length > 100);
  const without = small.filter((file) => !(file in ALONE));
  assert.deepEqual(without, [], 'join each with the file that imports it, or say in ALONE why it stands alone');
  const needless = Object.keys(ALONE).filter((file) => !small.includes(file));
  assert.deepEqual(needless, [], 'remove from ALONE what needs no reason any more');
});

const isSmall = (file: string) => readFileSync(join(ROOT, file), 'utf8').trimEnd().split('\n').length <= MAX_LINES;
