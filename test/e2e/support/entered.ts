/** Sessions that tests enter. */
import assert from 'node:assert/strict';
import type { TestContext } from 'vitest';
import { staticImage } from './any-images.ts';
import { apply, berth, makeNamespace, remove } from './cluster.ts';

/** How a script is run in the images of `makeSession`. */
export const SHELLS = { Image: ['sh', '-c'], Injected: ['/busybox', 'sh', '-c'] };

/** Makes what the tests read, with the commands that a static busybox has. */
const TREE = `B="\${BUSYBOX:-}"
  $B mkdir -p "$BERTH_STATE_DIR/site/sub"; cd "$BERTH_STATE_DIR"
  $B printf one > a; $B printf two > site/sub/b; $B ln -s /etc/passwd out; $B mkfifo site/pipe
  $B dd if=/dev/zero bs=1024 count=20000 2>/dev/null | $B tr '\\000' x > large`;

/** A session `notes`, in a namespace of its own. */
interface Notes {
  namespace: string;
  /** Resolves with the stdout of berth; rejects where it does not end with 0. */
  call: (...args: string[]) => Promise<string>;
}

/** A session of a class with this runner, whose turns run their input as a script. It has run one, and so has a pod. */
export async function makeSession(t: TestContext, runner: keyof typeof SHELLS): Promise<Notes> {
  const namespace = await makeNamespace(t);
  const name = `${namespace}-class`;
  const image = runner === 'Injected' ? { runner, image: staticImage } : {};
  const sandbox = { require: ['RunnerHardened', 'AgentContained'] };
  const overrides = ['agent.command', 'agent.args', 'agent.input', 'agent.result', 'agent.env'];
  const spec = { ...image, sandbox, overrides, resources: { limits: { memory: '512Mi' } } };
  await apply({ apiVersion: 'berth.dev/v1alpha1', kind: 'SessionClass', metadata: { name }, spec });
  t.onTestFinished(() => remove('sessionclass', name));
  const call = async (...args: string[]) => {
    const { code, stdout, stderr } = await berth(['-n', namespace, ...args]);
    assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
    return stdout;
  };
  const env = runner === 'Injected' ? ['--env', 'BUSYBOX=/busybox'] : [];
  const flags = ['--class', name, '--input-as', 'args', '--result', 'text', ...env];
  await call('create', 'notes', ...flags, '--', ...SHELLS[runner], 'eval "$1"', 'sh', '$(INPUT)');
  await call('turn', 'notes', TREE);
  return { namespace, call };
}
