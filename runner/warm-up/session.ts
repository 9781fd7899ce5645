import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:net';
import { join } from 'node:path';
import { unlessAborted } from '../../core/abort.ts';
import { bindText, controlText } from '../../core/frames/encode.ts';
import { type Bind, PROTOCOL_VERSION, type StartTurn } from '../../core/frames/messages.ts';
import { KEY_BYTES } from '../../core/frames/seal.ts';
import { systemRandom } from '../../core/system.ts';
import { answerFor } from '../agent-socket/answer.ts';
import { listenForAgent } from '../agent-socket/socket.ts';
import { together } from '../drivers/drain.ts';
import { Runner } from '../runner.ts';
import { partsFor, type Surroundings } from '../session/parts.ts';
import { directoriesUnder, socketPath } from '../system/directories.ts';
import { Pressure } from '../text/pressure.ts';

/** Variable of the warm-up's only secret. */
const SECRET = 'REHEARSAL_SECRET';
const TURN: StartTurn = {
  turn: 'warm-up',
  name: 'warm-up',
  index: 1,
  attempt: 1,
  input: 'warm-up',
  timeoutMs: 60_000,
};

/**
 * Runs a session of one turn from the bind to the result, as a real one is run. It has a runner, keys and frames of its
 * own, and directories below the runner's. Its agent is `berth-agent`, a static program that every image has; nothing is
 * run without it, or without a keeper, which alone knows that no process is left. Settles when all of it is gone;
 * rejects when it cannot be run or the signal aborts.
 */
export async function warmUpSession(surroundings: Surroundings, signal: AbortSignal): Promise<void> {
  const [tools] = surroundings.tools;
  if (surroundings.containment !== 'Keeper' || !tools) return;
  const root = join(surroundings.directories.run, 'warm-up');
  // The folder that is removed is also that of the runner's own files.
  const directories = { ...directoriesUnder(root), run: root };
  const { clock } = surroundings;
  try {
    mkdirSync(directories.state, { recursive: true });
    // A state is packed and sealed only if there is some.
    writeFileSync(join(directories.state, 'state'), 'warm-up');
    const own: Surroundings = {
      ...surroundings,
      environment: { PATH: surroundings.environment.PATH, [SECRET]: 'a secret of nobody' },
      directories,
      flow: together(new Pressure(clock), new Pressure(clock)),
    };
    await runTurn(own, bindOf([join(tools, 'berth-agent'), '--help']), signal);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

function bindOf(command: string[]): Bind {
  const key = () => systemRandom.bytes(KEY_BYTES).toString('base64');
  return {
    protocol: PROTOCOL_VERSION,
    session: { name: 'warm-up', namespace: 'warm-up', uid: 'warm-up' },
    incarnation: 1,
    keys: { up: key(), down: key() },
    state: { keyId: 'warm-up', key: key() },
    agent: {
      driver: 'Command',
      command,
      args: [],
      env: [{ name: SECRET, secret: SECRET }],
      input: 'Stdin',
      result: 'Text',
    },
    artifacts: { maxBytes: 1024, maxFiles: 1 },
  };
}

/** Plays the controller for a runner without streams. */
async function runTurn(surroundings: Surroundings, bind: Bind, signal: AbortSignal): Promise<void> {
  const frames = new Frames();
  let listening: Promise<Server | undefined> | undefined;
  const runner = new Runner({
    podUID: '',
    protocol: PROTOCOL_VERSION,
    clock: surroundings.clock,
    random: systemRandom,
    writeFrames: (text) => frames.write(text),
    writeText: () => {},
    partsFor: (accepted) => partsFor(accepted, surroundings, Promise.resolve()),
    onSession: (session, secrets) => {
      const path = socketPath(surroundings.directories);
      listening = listenForAgent(path, secrets, answerFor(session)).catch(() => undefined);
    },
  });
  const push = (lines: Iterable<string>) => {
    for (const line of lines) runner.push(Buffer.from(line));
  };
  try {
    push(['\n']);
    const boot = await unlessAborted(frames.find(/"boot":"(\w+)"/), signal);
    push(bindText(boot, { epoch: 1, n: 1 }, bind));
    const { session, incarnation, keys } = bind;
    const key = Buffer.from(keys.down, 'base64');
    const channel = { session: session.uid, incarnation, boot, key, random: systemRandom };
    push(controlText(channel, { epoch: 1, n: 2 }, 'turn', TURN));
    await unlessAborted(frames.find(/"kind":"(result|refused)"/), signal);
  } finally {
    await runner.stop('Shutdown', 'the warm-up is over', 0);
    (await listening)?.close();
  }
}

/** Frames that a runner has written. Their headers are readable. */
class Frames {
  #text = '';
  #look = () => {};

  write(text: string): boolean {
    this.#text += text;
    this.#look();
    return true;
  }

  /** Resolves with the first group of the pattern, once the pattern matches. */
  find(pattern: RegExp): Promise<string> {
    return new Promise((resolve) => {
      this.#look = () => {
        const found = pattern.exec(this.#text)?.[1];
        if (found !== undefined) resolve(found);
      };
      this.#look();
    });
  }
}
