import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { test } from 'vitest';
import { FrameDecoder, type FrameEvent } from '../../../../core/frames/decode.ts';
import type { Bind, Frame, RefusalCode, StartTurn } from '../../../../core/frames/messages.ts';
import { sealState } from '../../../../core/frames/seal.ts';
import { FrameSender } from '../../../../core/frames/sender.ts';
import { systemRandom as random } from '../../../../core/system.ts';
import { hiddenBy } from '../../../../core/text/hidden.ts';
import { answerFor, answerForCommands } from '../../../../runner/agent-socket/answer.ts';
import { type AgentRequest, readRequest } from '../../../../runner/agent-socket/requests.ts';
import type { Completion } from '../../../../runner/drivers/driver.ts';
import { Meter } from '../../../../runner/limits/meter.ts';
import { BoundSession, type Refusal, type Refuse } from '../../../../runner/session/session.ts';
import { EMPTY_DIGEST, NO_STATE } from '../../../../runner/state/archive.ts';
import { PodText } from '../../../../runner/text/pod-text.ts';
import { AgentEvents } from '../../../../runner/turn/agent-events.ts';
import { TurnRun, type TurnSurroundings } from '../../../../runner/turn/turn.ts';
import { eventually } from '../../../support/eventually.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { noCommands } from '../../../support/visit.ts';

function surroundings(driver: TurnSurroundings['driver'], write: (text: string) => boolean = () => true) {
  const clock = new VirtualClock();
  const channel = { session: 'session-1', incarnation: 1, boot: '0'.repeat(32), key: randomBytes(32) };
  return {
    channel,
    driver,
    commands: noCommands(),
    meter: new Meter({ limits: { required: false }, together: false, clock }),
    sender: new FrameSender({ ...channel, random, write }),
    state: { pack: async () => ({ ...NO_STATE, skipped: [] }), unpack: async () => {} },
    unpackFiles: async () => {},
    unpackEnvironment: async () => {},
    stateKey: { session: channel.session, keyId: 'k', key: randomBytes(32) },
    secrets: hiddenBy({}),
    events: new AgentEvents(hiddenBy({})),
    packsLogs: true,
    podText: new PodText(() => {}),
    clock,
    random,
  };
}

function message(turn: string): StartTurn {
  return { turn, name: turn, index: 0, attempt: 1, input: null, timeoutMs: 1000 };
}

/** Turn result as the controller reads it. */
async function read(completion: Completion): Promise<FrameEvent[]> {
  const decoder = new FrameDecoder();
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

/** Binding of a session whose driver decides what its turns do. */
function bindOf(session: string): Bind {
  return {
    protocol: 1,
    session: { name: 'a', namespace: 'team-a', uid: session },
    incarnation: 1,
    keys: { up: '', down: '' },
    state: { keyId: 'k', key: '' },
    agent: { driver: 'Command', command: ['true'], args: [], env: [], input: 'Stdin', result: 'Text' },
  };
}

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
  const session = new BoundSession(bindOf(around.channel.session), around);
  const names = Array.from({ length: 20 }, (_, i) => `turn-${i}`);
  for (const name of names) {
    assert.equal(
      session.turn(message(name), ({ message }) => assert.fail(message)),
      undefined,
    );
    await eventually(() => session.running === undefined && logs.length > names.indexOf(name), { what: `${name} ran` });
    session.ack(Number.MAX_SAFE_INTEGER);
  }
  // Patterns that are still being compiled delay the end for a moment.
  await eventually(
    () => {
      gc();
      return logs.filter((log) => log.deref() !== undefined).length <= 1;
    },
    { what: 'all but the last are given back' },
  );
});

test('a turn whose process is stopped for a suspension, or was, does not run: its cancellation is refused', async () => {
  const around = surroundings({
    run: (_request, { started, signal }) => {
      started(1);
      return new Promise((resolve) => {
        signal.addEventListener('abort', () => resolve({ outcome: 'Cancelled', leftRunning: [] }));
      });
    },
    stop: async () => {},
  });
  const session = new BoundSession(bindOf(around.channel.session), around);
  session.turn(message('asks'), ({ message }) => assert.fail(message));
  await eventually(() => session.running, { what: 'the turn runs' });
  session.running?.ask({ prompt: 'May I?' }, new AbortController().signal).catch(() => {});
  await eventually(() => session.running?.waits, { what: 'it waits' });
  session.suspend(true);
  const cancel = () => session.cancel({ turn: 'asks', outcome: 'Cancelled' })?.code;
  assert.equal(cancel(), 'UnknownTurn', 'it is being stopped');
  await eventually(() => session.ping(1).turn === undefined, { what: 'it has stopped' });
  assert.equal(cancel(), 'UnknownTurn');
});

test('what cannot be unpacked is refused for good: a repeated request starts no turn that the controller has ended', async () => {
  const ran: string[] = [];
  const digest = 'cd'.repeat(32);
  const key = randomBytes(32);
  const sealed = (session: string) => sealState(key, Buffer.from('packed'), { session, keyId: 'k' }, random);
  const around = surroundings({
    run: async ({ turn }) => {
      ran.push(turn.turn);
      return { outcome: 'Succeeded', output: null, leftRunning: [] };
    },
    stop: async () => {},
  });
  const { session: uid } = around.channel;
  const environment = { digest, session: 'build-1', keyId: 'k', key: key.toString('base64') };
  const ways: [Partial<Bind>, RefusalCode, (session: BoundSession, refuse: Refuse) => Refusal | undefined][] = [
    [
      { restores: { digest, incarnation: 1, seq: 1 } },
      'RestoreFailed',
      (session, refuse) => session.restore({ digest, keyId: 'k' }, sealed(uid), refuse),
    ],
    [
      { files: { due: true } },
      'FilesFailed',
      (session, refuse) => session.files({ version: 'v1', index: 0, count: 1 }, Buffer.from('archive'), refuse),
    ],
    [
      { environment },
      'EnvironmentMismatch',
      (session, refuse) => session.environment({ digest }, sealed('build-1'), refuse),
    ],
  ];
  for (const [needs, code, give] of ways) {
    let fails = true;
    const unpack = async () => {
      if (fails) throw Object.assign(new Error('no room'), { code: 'EnvironmentMismatch' });
    };
    const session = new BoundSession(
      { ...bindOf(uid), ...needs },
      {
        ...around,
        stateKey: { ...around.stateKey, key },
        state: { ...around.state, unpack },
        unpackFiles: unpack,
        unpackEnvironment: unpack,
      },
    );
    const refused: RefusalCode[] = [];
    assert.equal(
      give(session, ({ code }) => refused.push(code)),
      undefined,
    );
    await eventually(() => refused.length > 0, { what: `${code} is told` });
    fails = false;
    assert.equal(give(session, ({ message }) => assert.fail(message))?.code, code);
    session.turn(message('turn-1'), ({ code }) => refused.push(code));
    await eventually(() => refused.length > 1, { what: 'the turn is refused' });
    assert.deepEqual([refused, ran], [[code, 'NotRestored'], []]);
  }
});

test('a turn is refused until the end of the turn before is stored', async () => {
  const ran: string[] = [];
  const around = surroundings({
    run: async ({ turn }) => {
      ran.push(turn.turn);
      return { outcome: 'Succeeded', output: null, leftRunning: [] };
    },
    stop: async () => {},
  });
  const session = new BoundSession(bindOf(around.channel.session), around);
  const give = (turn: string) => session.turn(message(turn), ({ message }) => assert.fail(message));
  assert.equal(give('turn-1'), undefined);
  await eventually(() => session.ping(1).turn?.phase === 'Finished', { what: 'the turn has ended' });
  assert.deepEqual(give('turn-2'), { code: 'Busy', message: 'the end of turn turn-1 is not stored' });
  session.ack(Number.MAX_SAFE_INTEGER);
  assert.equal(give('turn-2'), undefined);
  await eventually(() => ran.length === 2, { what: 'the second turn runs' });
});

test('a request for a turn that has ended is nothing of the turn that runs', async () => {
  let end = () => {};
  const lines: string[] = [];
  const around = surroundings({
    run: async (_request, hooks) => {
      await new Promise<void>((resolve) => {
        end = resolve;
      });
      return { outcome: 'Succeeded', output: hooks.given() ?? 'own', leftRunning: [] };
    },
    stop: async () => {},
  });
  const session = new BoundSession(bindOf(around.channel.session), {
    ...around,
    podText: new PodText((text) => lines.push(text)),
  });
  const answer = answerFor(session);
  const { signal } = new AbortController();
  const told = async (line: object) => {
    const request = readRequest(JSON.stringify(line), around.secrets);
    assert.ok(!('problem' in request), JSON.stringify(request));
    const reply = await answer(request as AgentRequest, signal);
    return reply.ok || reply.error;
  };
  const result = { status: 'success', output: 'given' };
  const requests = [
    { do: 'event', event: 'said' },
    { do: 'result', result },
    { do: 'approve', prompt: 'q' },
  ];
  assert.equal(
    session.turn(message('turn-2'), ({ message }) => assert.fail(message)),
    undefined,
  );
  const over = { code: 'NoTurn', message: 'the turn that the request is for has ended, and another one runs' };
  for (const request of requests) assert.deepEqual(await told({ ...request, turn: 'turn-1' }), over);
  assert.deepEqual([lines, session.running?.waits], [[], false]);
  assert.equal(await told({ do: 'touch', turn: 'turn-1' }), true);
  for (const turn of [{ turn: 'turn-2' }, {}]) {
    for (const request of requests.slice(0, 2)) assert.equal(await told({ ...request, ...turn }), true);
  }
  assert.equal(lines.join('').match(/"event":"said"/g)?.length, 2);
  end();
  await eventually(() => session.running === undefined, { what: 'the end of the turn' });
  assert.deepEqual(await told({ ...requests[0], turn: 'turn-2' }), { code: 'NoTurn', message: 'no turn runs' });
  assert.deepEqual(readRequest('{"do":"touch","turn":2}', around.secrets), {
    problem: '"turn" must be a string; it is a number',
  });
});

/** Session whose frames are read and whose state directory has the given digest. */
function readSession(run: TurnSurroundings['driver']['run']) {
  const decoder = new FrameDecoder();
  const frames: Frame[] = [];
  const around = surroundings({ run, stop: async () => {} }, (text) => {
    for (const event of decoder.push(Buffer.from(text))) if (event.type === 'frame') frames.push(event.frame);
    return true;
  });
  decoder.setChannel(around.channel);
  const directory = { digest: EMPTY_DIGEST };
  around.state.pack = async () => ({ ...NO_STATE, digest: directory.digest, skipped: [] });
  const session = new BoundSession(bindOf(around.channel.session), around);
  const refuse = ({ message }: { message: string }) => assert.fail(message);
  return {
    session,
    around,
    frames,
    directory,
    give: (turn: string) => assert.equal(session.turn(message(turn), refuse), undefined),
    /** Asks for a snapshot and waits until it is sent. */
    snapshot: async () => {
      const before = frames.length;
      assert.equal(session.snapshot({}, refuse), undefined);
      await eventually(() => frames.length > before, { what: 'the snapshot is sent' });
    },
    /** State that the result of the turn names. */
    end: async (turn: string) => {
      const find = () => frames.flatMap((one) => (one.kind === 'result' && one.message.turn === turn ? [one] : []))[0];
      await eventually(() => find() !== undefined && session.running === undefined, { what: `${turn} has ended` });
      return find()?.message.state;
    },
  };
}
const [ONE, TWO] = ['1', '2'].map((digit) => digit.repeat(64)) as [string, string];

test('a turn that goes back to the state before a snapshot of another one sends it again', async () => {
  const { session, frames, directory, give, snapshot, end } = readSession(async () => ({
    outcome: 'Succeeded',
    leftRunning: [],
  }));
  directory.digest = ONE;
  give('turn-1');
  assert.deepEqual(await end('turn-1'), { seq: 1, digest: ONE });
  session.ack(2);
  session.suspend(true);
  directory.digest = TWO;
  await snapshot();
  session.suspend(false);
  session.ack(3);
  directory.digest = ONE;
  give('turn-2');
  assert.deepEqual(await end('turn-2'), { seq: 4, digest: ONE });
  session.ack(5);
  session.suspend(true);
  await snapshot();
  session.suspend(false);
  session.ack(6);
  give('turn-3');
  assert.equal(await end('turn-3'), 'Unchanged', 'stored or not, the snapshot was of this state');
  assert.deepEqual(
    frames.map(({ kind }) => kind),
    ['state', 'result', 'state', 'state', 'result', 'state', 'result'],
  );
});

test('a result brings the state of a request again until that is acknowledged, whatever has become of the request', async () => {
  for (const fate of ['Held', 'Acknowledged', 'NotSent'] as const) {
    let finish = () => {};
    const { session, around, frames, directory, give, end } = readSession((_request, hooks) => {
      hooks.started(1);
      return new Promise((resolve) => {
        finish = () => resolve({ outcome: 'Succeeded', leftRunning: [] });
      });
    });
    const { sender } = around;
    const send = sender.send.bind(sender);
    sender.send = (kind, ...rest) => {
      if (kind === 'approval' && fate === 'NotSent') throw new Error('too much is held');
      return send(kind, ...rest);
    };
    give('turn-1');
    await eventually(() => session.running?.started !== undefined, { what: 'the turn runs' });
    directory.digest = ONE;
    const asker = new AbortController();
    const asked = session.running?.ask({ prompt: 'May I?' }, asker.signal);
    asked?.catch(() => {});
    if (fate === 'NotSent') await asked?.catch(() => {});
    else await eventually(() => frames.at(-1)?.kind === 'approval', { what: 'the request is sent' });
    asker.abort();
    if (fate === 'Acknowledged') session.ack(sender.lastSeq);
    finish();
    const named = await end('turn-1');
    const states = frames.filter(({ kind }) => kind === 'state').map(({ seq }) => seq);
    assert.equal(states.length, fate === 'Acknowledged' ? 1 : 2, fate);
    assert.deepEqual(named, fate === 'Acknowledged' ? 'Unchanged' : { seq: states[1], digest: ONE }, fate);
  }
});

test('a snapshot of a state that is not acknowledged yet makes nobody rely on either', async () => {
  const { session, directory, give, snapshot, end } = readSession(async () => ({
    outcome: 'Succeeded',
    leftRunning: [],
  }));
  directory.digest = ONE;
  give('turn-1');
  assert.deepEqual(await end('turn-1'), { seq: 1, digest: ONE });
  session.suspend(true);
  await snapshot();
  session.suspend(false);
  // The end of a suspension acknowledges the snapshot, and with it all before.
  session.ack(3);
  give('turn-2');
  assert.deepEqual(await end('turn-2'), { seq: 4, digest: ONE });
});

test('a command of a client says nothing for a turn, but may keep the session from being idle', async () => {
  let touched = 0;
  const answer = answerForCommands({ touch: () => touched++ });
  const { signal } = new AbortController();
  for (const line of [
    '{"do":"event","event":1}',
    '{"do":"result","result":{"output":1}}',
    '{"do":"approve","question":"?"}',
  ]) {
    const reply = await answer({ ...JSON.parse(line) } as AgentRequest, signal);
    assert.equal(reply.ok === false && reply.error.code, 'NoTurn');
  }
  assert.deepEqual([await answer({ do: 'touch' }, signal), touched], [{ ok: true }, 1]);
});
