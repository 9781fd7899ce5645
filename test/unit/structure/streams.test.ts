import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'vitest';

const ROOT = join(import.meta.dirname, '../../..');
/** Handler of a stream's pieces: the name of a piece, and the beginning of what is done with it. */
const HANDLER = /\.on\('data', \(?(\w+)(?:: \w+)?\)? =>([^;]*;)/g;
const DECODED = /setEncoding\('\w+'\)$/;

/** Returns the handlers that make text of each piece for itself. */
function piecewise(source: string): string[] {
  return [...source.matchAll(HANDLER)].flatMap(({ 0: handler, 1: piece, 2: body = '', index }) => {
    const makesText = new RegExp(
      `\\+= (String\\()?${piece}(\\.toString\\((?!'latin1')[^)]*\\))?\\)?;|String\\(${piece}\\)|\\$\\{${piece}\\}`,
    );
    return makesText.test(body) && !DECODED.test(source.slice(0, index)) ? [handler] : [];
  });
}

// A piece of a stream may end within a character, and each half alone is shown as U+FFFD.
test('text of a stream is decoded over the ends of its pieces', () => {
  const files = globSync('{api,cli,clients,controller,core,examples,images,local,runner,test}/**/*.{ts,mjs,cjs}', {
    cwd: ROOT,
    exclude: (name) => name.includes('node_modules'),
  }).filter((file) => !file.endsWith('structure/streams.test.ts'));
  const sources = files.map((file) => [file, readFileSync(join(ROOT, file), 'utf8')] as const);
  const wrong = sources.flatMap(([file, source]) => piecewise(source).map((handler) => `${file}: ${handler}`));
  assert.deepEqual(wrong, [], "call setEncoding('utf8') before on('data')");
  const right = sources.filter(([, source]) => /setEncoding\('utf8'\)\.on\('data'/.test(source));
  assert.ok(right.length > 20);
});

test('a handler that makes text of each piece for itself is found', () => {
  assert.equal(piecewise("out.on('data', (piece) => {\n  text += piece;\n});").length, 1);
  assert.equal(piecewise("out.on('data', (piece: Buffer) => {\n  text += piece.toString('utf8');\n});").length, 1);
  assert.equal(piecewise("out.on('data', (piece) => lines.push(...String(piece).split('\\n')));").length, 1);
  // biome-ignore lint/suspicious/noTemplateCurlyInString: source of a program
  assert.equal(piecewise("out.on('data', (piece) => {\n  text += `stderr: ${piece}`;\n});").length, 1);
  assert.equal(piecewise("out.setEncoding('utf8').on('data', (piece: string) => {\n  text += piece;\n});").length, 0);
  assert.equal(piecewise("out.on('data', (piece) => {\n  text += piece.toString('latin1');\n});").length, 0);
  assert.equal(piecewise("out.on('data', (piece: Buffer) => {\n  bytes += piece.length;\n});").length, 0);
});
