import assert from 'node:assert/strict';
import { readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { ContainedRunner, noContainer, stageImage } from '../../support/contained-runner.ts';
import { eventually } from '../../support/eventually.ts';
import { skipIf } from '../../support/requires.ts';

/** An agent that runs what its turn brings. */
const agent = { result: 'Text' as const, input: 'Args' as const, args: ['$(INPUT)'] };

const READS = [
  ...['mem', 'environ', 'maps', 'smaps', 'smaps_rollup', 'numa_maps', 'pagemap', 'auxv', 'stack', 'syscall', 'io'],
  ...['personality', 'fd', 'fd/0', 'fd/1', 'fd/2', 'fdinfo', 'fdinfo/0', 'map_files'],
  ...['task/PID/mem', 'task/PID/environ', 'task/PID/fd/0', 'task/PID/fd/1', 'task/PID/maps'],
  ...['cwd/.', 'root/.', 'exe', 'ns/pid'],
];
const WRITES = [
  ...['mem', 'fd/0', 'fd/1', 'fd/2', 'task/PID/mem', 'task/PID/fd/1', 'comm', 'oom_score_adj', 'oom_adj'],
  ...['coredump_filter', 'clear_refs', 'autogroup', 'uid_map', 'gid_map', 'setgroups', 'timerslack_ns', 'attr/current'],
];
const CALLS = ['ptrace attach', 'ptrace seize', 'process_vm_readv', 'process_vm_writev', 'pidfd_getfd', 'kcmp'];

/** Prints what of all this succeeds against a process, as JSON. */
const ATTACKS = `exec python3 - "$1" <<'END'
import ctypes, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
pid = int(sys.argv[1] if sys.argv[1] != 'keeper' else open('/proc/%d/status' % os.getpid()).read().split('PPid:')[1].split()[0])
done = []
def attempt(name, act):
    try:
        if act() != -1: done.append(name)
    except OSError:
        pass
def read(path):
    if os.path.isdir(path): os.listdir(path)
    elif path.endswith('/exe') or '/ns/' in path: os.readlink(path)
    else: os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
for name in ${JSON.stringify(READS)}:
    attempt('read ' + name, lambda: read('/proc/%d/%s' % (pid, name.replace('PID', str(pid)))))
for name in ${JSON.stringify(WRITES)}:
    attempt('write ' + name, lambda: os.write(os.open('/proc/%d/%s' % (pid, name.replace('PID', str(pid))), os.O_WRONLY | os.O_NONBLOCK), b'1'))
word = ctypes.create_string_buffer(8)
class iovec(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('len', ctypes.c_size_t)]
mine, theirs = iovec(ctypes.addressof(word), 8), iovec(0x400000, 8)
attempt('ptrace attach', lambda: libc.ptrace(16, pid, None, None))
attempt('ptrace seize', lambda: libc.ptrace(0x4206, pid, None, None))
attempt('process_vm_readv', lambda: libc.process_vm_readv(pid, ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0))
attempt('process_vm_writev', lambda: libc.process_vm_writev(pid, ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0))
attempt('pidfd_getfd', lambda: libc.syscall(438, os.pidfd_open(pid), 0, 0))
attempt('kcmp', lambda: libc.syscall(312, pid, os.getpid(), 0, 0, 0))
print(json.dumps(done))
END`;

/** Signals by which a pod is ended in good order. */
const ENDING = ['SIGHUP', 'SIGINT', 'SIGTERM'] as const;
const OTHERS = Object.keys(constants.signals).filter((name) => !ENDING.some((ending) => ending === name));
/** Signals that the default disposition does not end a process by, or that PID 1 never gets. */
const HARMLESS = ['SIGCHLD', 'SIGCONT', 'SIGURG', 'SIGWINCH', 'SIGKILL', 'SIGSTOP'] as const;

/** Runners that are sent all signals at once: SIGNAL_PODS=1000 tries as many. */
const PODS = Number(process.env.SIGNAL_PODS ?? 5);
/**
 * Sends every signal but those that end a pod, again and again, while another process keeps the runner in its handler of
 * SIGCHLD, which runs with all signals blocked.
 */
const ALL_AT_ONCE = `exec python3 - <<'END'
import os
handled = os.fork()
if handled == 0:
    while True: os.kill(1, 17)
for _ in range(200):
    for signal in range(3, 65):
        if signal != 15: os.kill(1, signal)
os.kill(handled, 9)
print('sent')
END`;

/** Returns the numbers of the signals in a mask of a process's status. */
function signalsIn(pid: number, mask: 'SigIgn' | 'SigCgt'): number[] {
  const [, hex] = new RegExp(`^${mask}:\\s+(\\w+)$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  const bits = BigInt(`0x${hex}`);
  return Array.from({ length: 64 }, (_, i) => i + 1).filter((signal) => (bits >> BigInt(signal - 1)) & 1n);
}

describe('a runner as in a container, and its agent', skipIf(noContainer), () => {
  let image: string;
  let runner: ContainedRunner;
  beforeAll(async () => {
    image = await stageImage();
    runner = await ContainedRunner.bound({ image, agent });
  });
  afterAll(async () => {
    await runner[Symbol.asyncDispose]();
    rmSync(image, { recursive: true });
  });

  for (const target of ['runner', 'keeper']) {
    describe(`the ${target}`, () => {
      let succeeded: string[];
      beforeAll(async () => {
        const attacks = ATTACKS.replace('"$1"', target === 'runner' ? '1' : 'keeper');
        succeeded = JSON.parse((await runner.runTurn(attacks)).output as string);
      });
      for (const name of READS) {
        test(`does not let its agent read its ${name}`, () => assert.ok(!succeeded.includes(`read ${name}`)));
      }
      for (const name of WRITES) {
        test(`does not let its agent write its ${name}`, () => assert.ok(!succeeded.includes(`write ${name}`)));
      }
      for (const name of CALLS) {
        test(`does not let its agent use ${name} on it`, () => assert.ok(!succeeded.includes(name)));
      }
    });
  }

  for (const signal of OTHERS) {
    test(`goes on after ${signal} from its agent`, async () => {
      const result = await runner.runTurn(`kill -${signal.slice(3)} 1; echo sent`);
      assert.deepEqual([result.outcome, result.output], ['Succeeded', 'sent\n']);
    });
  }

  test('goes on after every real-time signal from its agent', async () => {
    const result = await runner.runTurn('for s in {32..64}; do kill -$s 1; done; echo sent');
    assert.deepEqual([result.outcome, result.output], ['Succeeded', 'sent\n']);
  });

  test('leaves no signal at a default that would end it: what it does not handle it ignores', async () => {
    await using other = await ContainedRunner.bound({ image, agent });
    const pid = other.outerPid;
    const settled = new Set([
      ...signalsIn(pid, 'SigIgn'),
      ...signalsIn(pid, 'SigCgt'),
      ...HARMLESS.map((name) => constants.signals[name]),
    ]);
    assert.deepEqual(
      Array.from({ length: 64 }, (_, i) => i + 1).filter((signal) => !settled.has(signal)),
      [],
    );
    assert.equal((await other.frame('bound')).message.hardened, true);
  });

  test('gives its agent the default of every signal, whatever it ignores itself', async () => {
    const { output } = await runner.runTurn('grep -E "SigIgn|SigBlk" /proc/self/status');
    assert.match(output as string, /^SigBlk:\s+0+\nSigIgn:\s+0+\n$/);
  });

  test('goes on after all signals at once from its agent, while it handles others', {
    timeout: 60_000 * PODS,
  }, async () => {
    for (let pod = 0; pod < PODS; pod++) {
      await using other = await ContainedRunner.bound({ image, agent });
      for (const [script, output] of [
        [ALL_AT_ONCE, 'sent\n'],
        ['echo on', 'on\n'],
      ]) {
        const result = await other.runTurn(script);
        assert.deepEqual([result.outcome, result.output], ['Succeeded', output], `pod ${pod}`);
      }
    }
  });

  test('reports that it is not hardened where it cannot ignore signals', async () => {
    const bare = await stageImage();
    try {
      rmSync(join(bare, 'signals.node'));
      await using other = await ContainedRunner.bound({ image: bare, agent });
      assert.equal((await other.frame('bound')).message.hardened, false);
    } finally {
      rmSync(bare, { recursive: true });
    }
  });

  test('opens no inspector: SIGUSR1 was sent and nobody listens', () => {
    const listening = ['tcp', 'tcp6'].flatMap((name) =>
      readFileSync(`/proc/net/${name}`, 'utf8')
        .split('\n')
        .map((line) => line.trim().split(/\s+/))
        .filter((fields) => fields[3] === '0A' && fields[7] === String(runner.user)),
    );
    assert.deepEqual(listening, []);
  });

  test('holds no descriptor that its agent could share: only pipes of its own', () => {
    const folder = `/proc/${runner.outerPid}/fd`;
    const files = readdirSync(folder).map((fd) => readlinkSync(`${folder}/${fd}`));
    assert.deepEqual(
      files.filter((file) => file.startsWith(runner.root)),
      [],
    );
  });

  for (const signal of ENDING) {
    test(`says goodbye and ends when its agent sends ${signal}: the turn is lost, nobody is left`, async () => {
      await using other = await ContainedRunner.bound({ image, agent });
      const result = await other.runTurn(`kill -${signal.slice(3)} 1; sleep 60`);
      assert.deepEqual([result.outcome, result.error?.code], ['Failed', 'PodLost']);
      assert.equal((await other.frame('bye')).message.reason, 'Signal');
      assert.equal((await other.exited).code, 128 + constants.signals[signal]);
    });
  }

  test('whose limits its agent takes away ends or fails its turns, and says which', async () => {
    await using other = await ContainedRunner.bound({ image, agent });
    const result = await other.runTurn('prlimit --pid 1 --nofile=4; echo set');
    assert.equal(result.output, 'set\n');
    const next = await other.runTurn('echo next');
    assert.deepEqual([next.outcome, next.error?.code], ['Failed', 'InternalError'], JSON.stringify(next));
  });

  test('whose CPU time its agent takes away ends: an end of the pod, not of its neighbours', async () => {
    await using other = await ContainedRunner.bound({ image, agent });
    other.startTurn('prlimit --pid 1 --cpu=1:1; while :; do kill -CHLD 1; done', 3_600_000);
    await other.exited;
    assert.equal((await runner.runTurn('echo on')).output, 'on\n');
  });
});

describe('a keeper and its agent', skipIf(noContainer), () => {
  let image: string;
  beforeAll(async () => {
    image = await stageImage();
  });
  afterAll(() => rmSync(image, { recursive: true }));

  test('killed by its agent: the turn fails, daemons that detached before go too, the next turn runs', async () => {
    await using runner = await ContainedRunner.bound({ image, agent });
    const daemons = '(setsid setsid sleep 300 >/dev/null 2>&1 &); (setsid env -i sleep 301 &)';
    const detached = 'until [ $(ps -eo ppid=,args= | grep -Ec "^ *$PPID sleep 30[01]$") = 2 ]; do :; done';
    const result = await runner.runTurn(`${daemons}; ${detached}; kill -KILL $PPID; sleep 60`);
    assert.deepEqual([result.outcome, result.signal], ['Failed', 'SIGKILL']);
    await eventually(() => runner.others().length === 0, { what: 'no process of the turn is left' });
    assert.equal((await runner.runTurn('echo next')).output, 'next\n');
  });

  test('killed with everything else by kill -9 -1: the turn fails, the next turn runs', async () => {
    await using runner = await ContainedRunner.bound({ image, agent });
    // A kill before the keeper reports that the agent runs would end the turn as one that could not be started.
    const turn = runner.startTurn('until [ -e go ]; do sleep 0.02; done; kill -KILL -1');
    await runner.frame('started');
    writeFileSync(join(runner.directory('work'), 'go'), '');
    const result = await runner.result(turn);
    assert.deepEqual([result.outcome, result.error?.code, result.signal], ['Failed', 'AgentFailed', 'SIGKILL']);
    assert.equal((await runner.runTurn('echo next')).output, 'next\n');
  });

  test('stopped by its agent: the turn ends by its timeout, nobody is left, the next turn runs', async () => {
    await using runner = await ContainedRunner.bound({ image, agent });
    const result = await runner.runTurn('(setsid sleep 300 &); kill -STOP $PPID; sleep 60', 300);
    assert.equal(result.outcome, 'TimedOut');
    await eventually(() => runner.others().length === 0, { what: 'no process of the turn is left' });
    assert.equal((await runner.runTurn('echo next')).output, 'next\n');
  });

  test('stopped when the agent has ended: the turn still ends, and the next turn runs', async () => {
    await using runner = await ContainedRunner.bound({ image, agent });
    // Stopped by one that stays behind, from the moment when the keeper has reaped the agent.
    const untilReaped = "while kill -0 '$$' 2>/dev/null; do :; done";
    const stopper = `k=$PPID; (setsid sh -c '${untilReaped}; while kill -STOP '$k'; do :; done' 2>/dev/null &); echo said`;
    const result = await runner.runTurn(stopper);
    assert.deepEqual([result.outcome, result.output], ['Succeeded', 'said\n']);
    assert.equal((await runner.runTurn('echo next')).output, 'next\n');
  });

  test('stopped and continued thousands of times loses nothing of what the agent says', async () => {
    await using runner = await ContainedRunner.bound({ image, agent });
    // The stopper ends by itself, so that its last signal is CONT.
    const stopper = 'k=$PPID; (for i in {1..5000}; do kill -STOP $k; kill -CONT $k; done) &';
    const result = await runner.runTurn(`${stopper} for i in {1..500}; do echo $i; done; wait`);
    const said = Array.from({ length: 500 }, (_, i) => `${i + 1}\n`).join('');
    assert.deepEqual([result.outcome, result.output], ['Succeeded', said]);
  });

  test('left stopped by an agent that has ended, even as its first act: it is woken, and nothing is lost', async () => {
    await using runner = await ContainedRunner.bound({ image, agent });
    const stop = 'until kill -STOP $PPID && grep -q "State:.T" /proc/$PPID/status; do :; done';
    for (const script of [`${stop}; echo after`, `sleep 0.1; echo before; ${stop}; echo after`]) {
      const result = await runner.runTurn(script);
      assert.deepEqual([result.outcome, result.exitCode], ['Succeeded', 0]);
      assert.match(result.output as string, /^(before\n)?after\n$/);
    }
  });
});
