import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'vitest';
import { parse } from 'yaml';
import { CHECKOUT } from '../../support/pages.ts';

/** The workspace of a session with a clone of a repository, and the hook of a class that is run in it. */
class Workspace {
  readonly root = mkdtempSync(join(tmpdir(), 'berth-patch-'));
  readonly #script: string;

  constructor(t: TestContext, example: string) {
    t.onTestFinished(() => rmSync(this.root, { recursive: true, force: true }));
    const { spec } = parse(readFileSync(join(CHECKOUT, 'examples', example), 'utf8'));
    this.#script = spec.agent.files[0].inline['patch.sh'];
    for (const folder of ['work', 'out', 'tmp']) mkdirSync(join(this.root, folder));
    this.sh(`git init --quiet --initial-branch=main ../origin && cd ../origin
printf '%s\\n' one two >text && echo ignored >.gitignore && git add --all && git commit --quiet --message=first`);
    this.sh('git clone --quiet ../origin cloned && git clone --quiet ../origin unchanged && mkdir notes');
  }

  /** stdout of a script in the workspace. */
  sh(script: string): string {
    const identity = ['AUTHOR', 'COMMITTER'].flatMap((who) => [
      [`GIT_${who}_NAME`, 'Ann'],
      [`GIT_${who}_EMAIL`, 'ann@example.com'],
    ]);
    const directories = { HOME: this.root, TMPDIR: join(this.root, 'tmp'), BERTH_OUTPUT_DIR: join(this.root, 'out') };
    const env = { PATH: process.env.PATH, ...Object.fromEntries(identity), ...directories };
    return execFileSync('sh', ['-c', script], { cwd: join(this.root, 'work'), env, encoding: 'utf8' });
  }

  /** Runs the hook; returns the names of what it leaves. */
  hook(): string[] {
    this.sh(this.#script);
    return readdirSync(join(this.root, 'out'));
  }
}

for (const example of ['claude-code.yaml', 'codex.yaml']) {
  describe(`patch.sh of examples/${example}`, () => {
    test('leaves commits, edits, new and binary files since the clone in a patch that makes another clone equal', (t) => {
      const workspace = new Workspace(t, example);
      workspace.sh('cd cloned && echo three >>text && git commit --quiet --all --message=second && echo four >>text');
      writeFileSync(join(workspace.root, 'work/cloned/binary'), Buffer.from([0, 1, 2, 255]));
      workspace.sh('cd cloned && mkdir new && echo new >new/file && echo no >ignored');
      assert.deepEqual(workspace.hook(), ['cloned.patch']);
      workspace.sh('git clone --quiet ../origin fresh && cd fresh && git apply ../../out/cloned.patch');
      assert.equal(workspace.sh('rm cloned/ignored; diff --recursive --exclude=.git cloned fresh'), '');
    });

    test('has the same base after a fetch and in a clone without a branch', (t) => {
      const workspace = new Workspace(t, example);
      workspace.sh(
        'cd cloned && git checkout --quiet --detach && git remote set-head origin --delete && echo three >>text',
      );
      workspace.sh('cd ../origin && echo upstream >>text && git commit --quiet --all --message=upstream');
      workspace.sh('cd cloned && git fetch --quiet');
      workspace.hook();
      const patch = readFileSync(join(workspace.root, 'out/cloned.patch'), 'utf8');
      assert.match(patch, /^\+three$/m);
      assert.doesNotMatch(patch, /upstream/);
    });

    test('leaves the index as the agent has it', (t) => {
      const workspace = new Workspace(t, example);
      workspace.sh('cd cloned && echo three >>text && echo new >new');
      const before = workspace.sh('git -C cloned status --porcelain');
      workspace.hook();
      assert.equal(workspace.sh('git -C cloned status --porcelain'), before);
    });
  });
}
