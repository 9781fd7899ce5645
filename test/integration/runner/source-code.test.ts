import assert from 'node:assert/strict';
import { isUtf8 } from 'node:buffer';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'vitest';
import { skipIf, skipWithout } from '../../support/requires.ts';
import { RunnerHarness } from '../../support/runner-harness.ts';

const CHECKOUT = join(import.meta.dirname, '../../..');
/** A Shell session returns 64 KiB of one stream, and a character less where one stands in the middle. */
const TURN_BYTES = 64 * 1024 - 8;
const SOURCE = /\.(?:[cm]?[jt]s|py|md|json|ya?ml|tpl|tsx|html)$/;
/** Folders of a checkout that are made. */
const MADE = new Set(['node_modules', 'build', '.git', '__pycache__', 'site-packages']);

/** A value of this length that no source has: this file neither. */
const random = (name: string, length: number) => createHash('sha512').update(name).digest('base64').slice(0, length);

/** Values as Secrets have them: passwords, tokens, a key of many lines, and a name that is too short. Files of JSON and YAML. */
const ENV = {
  PASSWORD: `${random('a', 7)} ${random('b', 7)}+~`,
  API_KEY: `sk-proj-${random('c', 40)}`,
  PIN: String(parseInt(random('d', 16).replaceAll(/[^0-9a-z]/gi, ''), 36)).slice(0, 8),
  DB_USER: 'root',
  PEM: `-----BEGIN PRIVATE KEY-----\n${random('e', 64)}\n${random('f', 64)}\n-----END PRIVATE KEY-----\n`,
};
const FILES = {
  'client.json': JSON.stringify({ private_key: random('g', 24), url: `https://${random('h', 9)}.example` }),
  config: `apiVersion: v1
kind: Config
clusters:
- name: kind
  cluster:
    server: https://${random('i', 9)}.example
contexts:
- name: kind
  context:
    cluster: kind
    namespace: default
current-context: kind
preferences: {}
users:
- name: admin
  user:
    token: ${random('j', 40)}
`,
};

/** Files of a tree, in order, that are text. A stream of a session is text. */
function sources(root: string): string[] {
  const entries = readdirSync(root, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  return entries.flatMap((entry) => {
    const path = join(root, entry.name);
    if (entry.isDirectory()) return MADE.has(entry.name) ? [] : sources(path);
    return entry.isFile() && SOURCE.test(entry.name) && isUtf8(readFileSync(path)) ? [path] : [];
  });
}

const quoted = (path: string) => `'${path.replaceAll("'", "'\\''")}'`;

/** Commands that print a tree, each no more than one turn returns, and what they must print. */
function* turnsOf(root: string): Generator<{ command: string; expected: Buffer }> {
  let files: string[] = [];
  let pieces: Buffer[] = [];
  let bytes = 0;
  for (const path of sources(root)) {
    const content = readFileSync(path);
    if (bytes + content.length > TURN_BYTES && files.length > 0) {
      yield { command: `cat ${files.map(quoted).join(' ')}`, expected: Buffer.concat(pieces) };
      [files, pieces, bytes] = [[], [], 0];
    }
    if (content.length > TURN_BYTES) {
      for (let from = 0; from < content.length; ) {
        let to = Math.min(content.length, from + TURN_BYTES);
        // Chunks end between two characters.
        while (to < content.length && ((content[to] as number) & 0xc0) === 0x80) to -= 1;
        const command = `tail -c +${from + 1} ${quoted(path)} | head -c ${to - from}`;
        yield { command, expected: content.subarray(from, to) };
        from = to;
      }
    } else {
      files.push(path);
      pieces.push(content);
      bytes += content.length;
    }
  }
  if (files.length > 0) yield { command: `cat ${files.map(quoted).join(' ')}`, expected: Buffer.concat(pieces) };
}

const python = spawnSync('python3', ['-c', 'import sysconfig; print(sysconfig.get_paths()["stdlib"])'], {
  encoding: 'utf8',
}).stdout?.trim();

for (const [name, root] of [
  ['this repository', CHECKOUT],
  ['Python’s standard library', python],
  ['the package zod', join(CHECKOUT, 'node_modules/zod')],
  ['the package fastify', join(CHECKOUT, 'node_modules/fastify')],
  ['the package undici', join(CHECKOUT, 'node_modules/undici')],
  ['the package yaml', join(CHECKOUT, 'node_modules/yaml')],
] as const) {
  const missing = !root || !existsSync(root);
  test(
    `the source of ${name} comes back from a Shell session byte for byte, Secrets given`,
    skipIf(skipWithout('python', !missing, `${name} is not on this machine`)),
    async (t) => {
      const names = Object.keys(ENV);
      await using runner = new RunnerHarness({
        env: Object.fromEntries(Object.values(ENV).map((value, i) => [`BERTH_SECRET_${i}`, value])),
        agent: {
          driver: 'Shell',
          command: [],
          args: [],
          shell: { rewriteBackground: true },
          env: names.map((variable, i) => ({ name: variable, secret: `BERTH_SECRET_${i}` })),
          secretFiles: Object.keys(FILES).map((path) => ({ path })),
        },
      });
      const folder = join(runner.root, 'berth-secrets');
      mkdirSync(folder);
      for (const [path, content] of Object.entries(FILES)) writeFileSync(join(folder, path), content);
      await runner.ready();
      runner.bind();
      await runner.frame('bound');
      let bytes = 0;
      for (const { command, expected } of turnsOf(root as string)) {
        const { output, redactions } = await runner.runTurn({ command });
        const { stdout } = output as { stdout: string };
        assert.ok(Buffer.from(stdout).equals(expected), `${command}\n${firstDifference(stdout, expected.toString())}`);
        assert.equal(redactions, undefined);
        bytes += expected.length;
        // Acknowledged results are no longer held.
        runner.send('ack', { through: runner.frames('result').at(-1)?.seq ?? 0 });
      }
      assert.ok(bytes > 500_000, `${bytes} bytes are no proof`);
      // The session does hide: its Secrets are known.
      const { output, redactions } = await runner.runTurn({ command: 'echo "$PASSWORD $API_KEY $PIN $DB_USER"' });
      const { stdout } = output as { stdout: string };
      assert.deepEqual([stdout, redactions], ['[REDACTED] [REDACTED] [REDACTED] root\n', 3]);
      await t.annotate(`${bytes} bytes compared`);
    },
  );
}

function firstDifference(got: string, expected: string): string {
  let at = 0;
  while (at < expected.length && got[at] === expected[at]) at += 1;
  const around = (text: string) => JSON.stringify(text.slice(Math.max(0, at - 80), at + 80));
  return `at character ${at}: ${around(got)} instead of ${around(expected)}`;
}
