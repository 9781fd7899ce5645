import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { test } from 'vitest';
import { FrameDecoder, type FrameEvent } from '../../../core/frames/decode.ts';
import type { Bind, StartTurn } from '../../../core/frames/messages.ts';
import { FrameSender } from '../../../core/frames/sender.ts';
import { validateFrame } from '../../../core/frames/validate.ts';
import { systemRandom as random } from '../../../core/system.ts';
import { hiddenBy } from '../../../core/text/hidden.ts';
import type { Completion } from '../../../runner/drivers/driver.ts';
import { Meter } from '../../../runner/limits/meter.ts';
import { BoundSession } from '../../../runner/session.ts';
import { EMPTY_DIGEST, NO_STATE } from '../../../runner/state/archive.ts';
import { TurnRun, type TurnSurroundings } from '../../../runner/turn.ts';
import { eventually } from '../../support/eventually.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

function surroundings(driver: TurnSurroundings['driver'], write: (text: string) => boolean = () => true) {
  const clock = new VirtualClock();
  const channel = { session: 'session-1', incarnation: 1, boot: '0'.repeat(32), key: randomBytes(32) };
  return {
    channel,
    driver,
    meter: new Meter({ limits: { required: false }, together: false, clock }),
    sender: new FrameSender({ ...channel, random, write }),
    state: { pack: async () => ({ ...NO_STATE, skipped: [] }), unpack: async () => {} },
    stateKey: { session: channel.session, keyId: 'k', key: randomBytes(32) },
    secrets: hiddenBy({}),
    write: () => {},
    clock,
    random,
  };
}

function message(turn: string): StartTurn {
  return { turn, name: turn, index: 0, attempt: 1, input: null, timeoutMs: 1000 };
}

/** What the controller reads of a turn that ends so. */
async function read(completion: Completion): Promise<FrameEvent[]> {
  const decoder = new FrameDecoder({ validate: validateFrame });
  const events: FrameEvent[] = [];
  const around = surroundings({ run: async () => completion, stop: async () => {} }, (text) => {
    events.push(...decoder.push(Buffer.from(text)));
    return true;
  });
  decoder.setChannel(around.channel);
  await new TurnRun(message('turn-1'), around, { digest: EMPTY_DIGEST }).run(undefined, undefined);
  return events;
}

test('a turn that left more processes than a result may name has a result all the same, with the first of them', async () => {
  const leftRunning = Array.from({ length: 5000 }, (_, i) => ({ pid: i + 1, command: 'x'.repeat(250) }));
  const [event] = await read({ outcome: 'Succeeded', output: 'said', leftRunning });
  assert.ok(event?.type === 'frame' && event.frame.kind === 'result', JSON.stringify(event).slice(0, 300));
  const { message } = event.frame;
  assert.deepEqual([message.outcome, message.output, message.leftRunning.length], ['Succeeded', 'said', 4096]);
});

test('a session keeps nothing of its turns but of the last', async () => {
  setFlagsFromString('--expose_gc');
  const gc = runInNewContext('gc') as () => void;
  const logs: WeakRef<object>[] = [];
  const around = surroundings({
    run: async (_request, hooks) => {
      logs.push(new WeakRef(hooks.log));
      return { outcome: 'Succeeded', output: null, leftRunning: [] };
    },
    stop: async () => {},
  });
  const bind: Bind = {
    protocol: 1,
    session: { name: 'a', namespace: 'team-a', uid: around.channel.session },
    incarnation: 1,
    keys: { up: '', down: '' },
    state: { keyId: 'k', key: '' },
    agent: { driver: 'Command', command: ['true'], args: [], env: [], input: 'Stdin', result: 'Text' },
  };
  const session = new BoundSession(bind, around);
  const names = Array.from({ length: 20 }, (_, i) => `turn-${i}`);
  for (const name of names) {
    assert.equal(
      session.turn(message(name), ({ message }) => assert.fail(message)),
      undefined,
    );
    await eventually(() => session.running === undefined && logs.length > names.indexOf(name), { what: `${name} ran` });
  }
  // What is still being compiled is kept for a moment.
  await eventually(
    () => {
      gc();
      return logs.filter((log) => log.deref() !== undefined).length <= 1;
    },
    { what: 'all but the last are given back' },
  );
});
