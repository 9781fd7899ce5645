import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { test } from 'vitest';
import { FrameDecoder } from '../../../../core/frames/decode.ts';
import { unpackLog } from '../../../../core/frames/log-text.ts';
import { FrameSender } from '../../../../core/frames/sender.ts';
import { systemRandom as random } from '../../../../core/system.ts';
import { hiddenBy } from '../../../../core/text/hidden.ts';
import type { Driver } from '../../../../runner/drivers/driver.ts';
import { Meter } from '../../../../runner/limits/meter.ts';
import { ALL_STOPPED, type Contained, type Unstopped } from '../../../../runner/process/contained.ts';
import { BoundSession, type SessionSurroundings } from '../../../../runner/session/session.ts';
import { EMPTY_DIGEST, NO_STATE } from '../../../../runner/state/archive.ts';
import { PodText } from '../../../../runner/text/pod-text.ts';
import { AgentEvents } from '../../../../runner/turn/agent-events.ts';
import { TurnRun } from '../../../../runner/turn/turn.ts';
import { eventually } from '../../../support/eventually.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { noCommands } from '../../../support/visit.ts';

const SPEC = { file: '', argv0: '', args: [], cwd: '', env: {} };

/** A family that writes down what is done with it. */
function familyOf(name: string, done: string[], unstopped: Unstopped = ALL_STOPPED): Contained {
  return {
    usage: undefined,
    overrun: undefined,
    onUsage: () => {},
    exited: new Promise(() => {}),
    gone: new Promise(() => {}),
    hold: async () => {
      done.push(`hold ${name}`);
      await setImmediate();
      return unstopped;
    },
    release: () => void done.push(`release ${name}`),
  } as unknown as Contained;
}

function meterOf(holds = true): Meter {
  return new Meter({ limits: { required: false }, together: false, holds, clock: new VirtualClock() });
}

test('all families stand while the work is done, one work at a time, and go on after it, also when it fails', async () => {
  const done: string[] = [];
  const meter = meterOf();
  for (const name of ['a', 'b']) await meter.wrap(async () => familyOf(name, done))(SPEC);
  const work = (name: string) => async () => {
    done.push(`${name} begins`);
    await setImmediate();
    done.push(`${name} ends`);
    if (name === 'first') throw new Error('no room');
  };
  const [first, second] = await Promise.allSettled([meter.whileHeld(work('first')), meter.whileHeld(work('second'))]);
  assert.deepEqual([first.status, second.status], ['rejected', 'fulfilled']);
  const around = (name: string) => ['hold a', 'hold b', `${name} begins`, `${name} ends`, 'release a', 'release b'];
  assert.deepEqual(done, [...around('first'), ...around('second')]);
});

test('a process that is being started is held, too, and one that is to start meanwhile starts afterwards', async () => {
  const done: string[] = [];
  const meter = meterOf();
  await meter.wrap(async () => familyOf('a', done))(SPEC);
  const starting = Promise.withResolvers<Contained>();
  const early = meter.wrap(() => starting.promise)(SPEC);
  let late: Promise<Contained> | undefined;
  const held = meter.whileHeld(async () => {
    late = meter.wrap(async () => {
      done.push('start late');
      return familyOf('late', done);
    })(SPEC);
    await setImmediate();
    done.push('work');
  });
  await setImmediate();
  assert.deepEqual(done, []);
  starting.resolve(familyOf('early', done));
  await Promise.all([held, early]);
  await late;
  assert.deepEqual(done, ['hold a', 'hold early', 'work', 'release a', 'release early', 'start late']);
});

test('a process that could not be started does not keep the work from being done', async () => {
  const meter = meterOf();
  const starting = Promise.withResolvers<Contained>();
  const failed = meter.wrap(() => starting.promise)(SPEC);
  const held = meter.whileHeld(async () => 'done');
  starting.reject(new Error('no such program'));
  await assert.rejects(failed, /no such program/);
  assert.equal(await held, 'done');
});

test('no process is held in a session whose files are not read', async () => {
  const done: string[] = [];
  const meter = meterOf(false);
  await meter.wrap(async () => familyOf('a', done))(SPEC);
  await meter.whileHeld(async () => {});
  assert.deepEqual(done, []);
});

const UNSTOPPED: Unstopped = { named: [{ pid: 7, command: 'cp --key sk-0123456789abcdef /a /b' }], count: 3 };
const TOLD =
  '3 processes could not be stopped while the files were read, and may have changed them meanwhile: 7 cp --key';

/** A session with one family, whose deeds are written down with those of the runner. */
async function sessionOf(driver: Driver['run'], unstopped = ALL_STOPPED) {
  const done: string[] = [];
  const decoder = new FrameDecoder();
  const channel = { session: 'session-1', incarnation: 1, boot: '0'.repeat(32), key: randomBytes(32) };
  decoder.setChannel(channel);
  const logs: string[] = [];
  const said: string[] = [];
  const write = (text: string) => {
    for (const event of decoder.push(Buffer.from(text))) {
      if (event.type !== 'frame') continue;
      done.push(event.frame.kind);
      if (event.frame.kind === 'log') logs.push(unpackLog(event.frame.message, event.frame.binary)?.text ?? '');
    }
    return true;
  };
  const clock = new VirtualClock();
  const meter = new Meter({ limits: { required: false }, together: false, clock });
  await meter.wrap(async () => familyOf('a', done, unstopped))(SPEC);
  const around: SessionSurroundings = {
    driver: { run: driver, stop: async () => {} },
    commands: noCommands(),
    meter,
    sender: new FrameSender({ ...channel, random, write }),
    state: {
      pack: async () => {
        done.push('pack');
        return { ...NO_STATE, digest: 'ab'.repeat(32), skipped: [] };
      },
      unpack: async () => {},
    },
    output: {
      empty: () => {},
      collect: async () => {
        done.push('collect');
        return { files: [], contents: [], leftOut: { count: 0, entries: [] }, redactions: 0 };
      },
    },
    unpackFiles: async () => {},
    unpackEnvironment: async () => {},
    stateKey: { session: channel.session, keyId: 'k', key: randomBytes(32) },
    secrets: hiddenBy({ values: ['sk-0123456789abcdef'] }),
    events: new AgentEvents(hiddenBy({})),
    packsLogs: true,
    podText: new PodText((text) => void said.push(text)),
    clock,
    random,
  };
  return { done, logs, said, around };
}

const MESSAGE = { turn: 'turn-1', name: 'turn-1', index: 0, attempt: 1, input: null, timeoutMs: 1000 };

test('a turn’s state and artifacts are read while its processes stand; a question’s state, too', async () => {
  const asked = Promise.withResolvers<void>();
  const { done, around } = await sessionOf(async () => {
    await asked.promise;
    return { outcome: 'Succeeded', output: null, leftRunning: [] };
  });
  const run = new TurnRun(MESSAGE, around, { digest: EMPTY_DIGEST });
  const end = run.run(undefined, undefined);
  run.ask({ prompt: 'May I?' }, new AbortController().signal).catch(() => {});
  await eventually(() => done.includes('approval'), { what: 'the question' });
  assert.deepEqual(done.splice(0), ['hold a', 'pack', 'state', 'release a', 'approval']);
  asked.resolve();
  await end;
  assert.deepEqual(done, ['hold a', 'pack', 'state', 'collect', 'release a', 'result']);
});

const BIND = {
  protocol: 1,
  session: { name: 'a', namespace: 'team-a', uid: 'session-1' },
  incarnation: 1,
  keys: { up: '', down: '' },
  state: { keyId: 'k', key: '' },
  agent: {
    driver: 'Command' as const,
    command: ['true'],
    args: [],
    env: [],
    input: 'Stdin' as const,
    result: 'Text' as const,
  },
};

test('a suspension’s state is read while the session’s processes stand', async () => {
  const { done, said: logs, around } = await sessionOf(async () => assert.fail(), UNSTOPPED);
  const session = new BoundSession(BIND, around);
  session.snapshot({}, ({ message }) => assert.fail(message));
  await eventually(() => done.includes('release a'), { what: 'the snapshot' });
  assert.deepEqual(done, ['hold a', 'pack', 'state', 'release a']);
  assert.ok(logs.join('').includes(TOLD) && !logs.join('').includes('sk-0123456789abcdef'), logs.join(''));
});

test('a file from outside gets no name while a suspension’s state is read, and sees the suspension after that', async () => {
  const { around } = await sessionOf(async () => assert.fail());
  const packed = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  around.state.pack = async () => {
    begun.resolve();
    await packed.promise;
    return NO_STATE;
  };
  const session = new BoundSession(BIND, around);
  session.suspend(true);
  session.snapshot({}, ({ message }) => assert.fail(message));
  await begun.promise;
  const seen: string[] = [];
  const placed = session.outsidePacking(() => seen.push(session.access), 1000);
  await setImmediate();
  assert.deepEqual(seen, []);
  packed.resolve();
  assert.equal(await placed, true);
  assert.deepEqual(seen, ['Suspended']);
});

test('what could not be stopped in time is told in the turn, without secrets', async () => {
  const { logs, around } = await sessionOf(
    async () => ({ outcome: 'Succeeded', output: null, leftRunning: [] }),
    UNSTOPPED,
  );
  await new TurnRun(MESSAGE, around, { digest: EMPTY_DIGEST }).run(undefined, undefined);
  const log = logs.at(-1) ?? '';
  assert.ok(log.includes(TOLD) && log.includes('and 2 more]') && !log.includes('sk-0123456789abcdef'), log);
});

test('commands stand on after other work, start no second time to stand, and go on when the session is resumed', async () => {
  const done: string[] = [];
  const meter = meterOf();
  await meter.wrap(async () => familyOf('turn', done))(SPEC);
  await meter.wrap(async () => familyOf('command', done), 'command')(SPEC);
  meter.standCommands(true);
  await meter.whileHeld(async () => void done.push('work'));
  await meter.wrap(async () => familyOf('late', done), 'command')(SPEC);
  assert.deepEqual(done, ['hold command', 'hold turn', 'work', 'release turn', 'hold late']);
  done.length = 0;
  await meter.whileHeld(async () => meter.standCommands(false));
  assert.deepEqual(done, ['hold turn', 'release turn', 'release command', 'release late']);
});
