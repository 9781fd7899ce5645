import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'vitest';

/** Loses its stdout, and then deletes for as long as stdin is open. */
const COMMAND = `
  const { systemCli } = await import('./cli/system.ts');
  const cli = systemCli();
  const isLost = new Promise((resolve) => cli.interrupted.addEventListener('abort', resolve));
  await cli.out('text');
  await isLost;
  process.on('SIGINT', () => process.stderr.write('interrupted\\n'));
  process.on('SIGHUP', () => process.stderr.write('hung up\\n'));
  process.stderr.write('deletes\\n');
  process.stdin.on('end', () => process.stderr.write('deleted\\n', () => process.exit(0))).resume();
`;

async function withoutStdout() {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', COMMAND]);
  child.stdout.destroy();
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const closed = once(child, 'close');
  await once(child.stderr, 'data');
  return { child, closed, said: () => said };
}

test('the first signal after the loss of stdout cuts off nothing of what the command deletes', async () => {
  const { child, closed, said } = await withoutStdout();
  child.kill('SIGINT');
  await Promise.race([once(child.stderr, 'data'), closed]);
  child.stdin.end();
  assert.deepEqual(await closed, [0, null]);
  assert.equal(said(), 'deletes\ninterrupted\ndeleted\n');
});

test('the second signal ends the command at once', async () => {
  const { child, closed, said } = await withoutStdout();
  child.kill('SIGINT');
  await Promise.race([once(child.stderr, 'data'), closed]);
  child.kill('SIGTERM');
  assert.deepEqual(await closed, [143, null]);
  assert.equal(said(), 'deletes\ninterrupted\n');
});

test('a second SIGHUP cuts off nothing: the kernel and the shell both tell of a closed terminal', async () => {
  const { child, closed, said } = await withoutStdout();
  for (let n = 0; n < 2; n++) {
    child.kill('SIGHUP');
    await Promise.race([once(child.stderr, 'data'), closed]);
  }
  child.stdin.end();
  assert.deepEqual(await closed, [0, null]);
  assert.equal(said(), 'deletes\nhung up\nhung up\ndeleted\n');
});
