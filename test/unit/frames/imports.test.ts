import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'vitest';

test('the runner’s side of the pod boundary loads no package', () => {
  const script = `
    import { register } from 'node:module';
    const seen = [];
    register('data:text/javascript,' + encodeURIComponent(
      "export async function resolve(s, c, n) { const r = await n(s, c); " +
      "if (r.url.includes('node_modules')) throw new Error('loads ' + s); return r; }"));
    await import('./core/frames/control.ts');
    await import('./core/frames/sender.ts');
    await import('./core/frames/encode.ts');
    await import('./core/frames/seal.ts');
  `;
  const root = new URL('../../../', import.meta.url);
  assert.equal(
    execFileSync(process.execPath, ['--input-type=module', '-e', script], { cwd: root, encoding: 'utf8' }),
    '',
  );
});
