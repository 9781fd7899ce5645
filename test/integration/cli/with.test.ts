import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { Caller } from './support.ts';

const AGENT = `import json, os, sys
from lib.square import square
request = json.loads(sys.stdin.readline())
files = sorted(os.path.relpath(os.path.join(folder, name)) for folder, _, names in os.walk(".") for name in names)
output = {"square": square(request["input"]["n"]), "files": files, "here": os.getcwd() == os.environ["BERTH_AGENT_DIR"]}
print(os.environ["BERTH_RESULT_START_MARKER"], json.dumps({"status": "success", "output": output}))
print(os.environ["BERTH_RESULT_END_MARKER"])
`;
const FILES = {
  'agent.py': AGENT,
  'lib/square.py': 'def square(n):\n    return n * n\n',
  '.env': 'TOKEN=secret',
  '.gitignore': '*.log\n',
  'debug.log': 'left out',
};
const TAKEN = ['.gitignore', 'agent.py', 'lib/square.py'];

const project = mkdtempSync(join(tmpdir(), 'berth-with-'));
const caller = new Caller(project);

beforeAll(async () => {
  for (const [name, content] of Object.entries(FILES)) {
    mkdirSync(dirname(join(project, name)), { recursive: true });
    writeFileSync(join(project, name), content);
  }
  await caller.ok('local', 'up', '--detach');
});
afterAll(async () => {
  await caller.berth(['local', 'down']);
  caller.remove();
  rmSync(project, { recursive: true, force: true });
});

describe('--with', () => {
  test('takes the files of a folder along, which are the directory of the program', async () => {
    const { code, stdout, stderr } = await caller.berth([
      ...['run', '--class', 'python', '--with', '.', '--input', '{"n": 3}', '--', 'python3', 'agent.py'],
    ]);
    assert.equal(code, 0, stderr);
    assert.deepEqual(JSON.parse(stdout), { square: 9, files: TAKEN, here: true });
  });

  test('gives them to every pod of a session, whatever becomes of the folder', async () => {
    await caller.ok('create', 'kept', '--with', '.', '--', 'python3', 'agent.py');
    const first = await caller.ok('turn', 'kept', '--input', '{"n": 2}');
    await caller.ok('suspend', 'kept');
    rmSync(join(project, 'lib'), { recursive: true });
    const second = await caller.ok('turn', 'kept', '--input', '{"n": 2}');
    assert.deepEqual([JSON.parse(first).files, second], [TAKEN, first]);
  });

  test('of an update reaches the next turn of a session, which keeps its state', async () => {
    const agent = join(project, 'count.sh');
    const script = (word: string) => `echo ${word} >>"$BERTH_STATE_DIR/words"; cat "$BERTH_STATE_DIR/words"`;
    writeFileSync(agent, script('old'));
    await caller.ok('create', 'fixed', '--result', 'text', '--with', 'count.sh', '--', 'sh', 'count.sh');
    assert.equal(await caller.ok('turn', 'fixed', '--input', 'null'), 'old\n');
    writeFileSync(agent, script('new'));
    assert.equal(
      await caller.ok('update', 'fixed', '--with', 'count.sh', '--restart'),
      'session.berth.dev/fixed updated\nsession.berth.dev/fixed restarted\n',
    );
    assert.equal(await caller.ok('turn', 'fixed', '--input', 'null'), 'old\nnew\n');
  });

  test('creates nothing where the files cannot be packed', async () => {
    const { code, stderr } = await caller.berth(['create', 'none', '--with', 'missing', '--', 'sh', 'a.sh']);
    assert.equal(code, 2, stderr);
    assert.match(stderr, /--with missing: .* cannot be read \(ENOENT\)/);
    assert.doesNotMatch(await caller.ok('list'), /none/);
  });
});
