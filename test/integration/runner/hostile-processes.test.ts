import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { afterAll, beforeAll, describe, test } from 'vitest';
import {
  ContainedRunner,
  containedCommand,
  noContainer,
  processesOf,
  stageImage,
} from '../../support/contained-runner.ts';
import { eventually } from '../../support/eventually.ts';
import { skipIf } from '../../support/requires.ts';

const SUPPORT = join(import.meta.dirname, '..', '..', 'support');

/** An agent that runs what its turn brings. */
const agent = { result: 'Text' as const, input: 'Args' as const, args: ['$(INPUT)'] };
const IGNORE = '$SIG{$_} = "IGNORE" for qw(TERM HUP INT CHLD);';
const perl = (code: string) => `exec perl -MPOSIX -e '${code}'`;

/** Every call that sets a clock, and what the kernel says to it. */
const CLOCK = `python3 - <<'END'
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
some = (ctypes.c_long * 2)(1, 0)
offset = (ctypes.c_long * 32)(0x0101, 1)
for name, args in (('settimeofday', (some, None)), ('clock_settime', (0, some)), ('adjtimex', (offset,)), ('clock_adjtime', (0, offset))):
    print(name, 'done' if getattr(libc, name)(*args) >= 0 else errno.errorcode[ctypes.get_errno()])
END`;

/** The runner's user may have 64 processes and threads: every one of these ends there, not at the machine's end. */
const BOMBS: [what: string, script: string, limit: 'TooManyProcesses' | 'CpuLimit'][] = [
  ['that forks all it can', perl(`${IGNORE} while (1) { fork }`), 'TooManyProcesses'],
  [
    'whose processes each make a session of their own',
    perl(`${IGNORE} while (1) { setsid if defined(my $p = fork) && !$p }`),
    'TooManyProcesses',
  ],
  ['of shells', 'trap "" TERM; f() { f | f & }; f; while :; do f; sleep 0.01; done', 'TooManyProcesses'],
  [
    'that replaces each of its processes as soon as it is gone',
    perl(
      `${IGNORE} for (1..30) { my $c = fork; next if !defined $c || $c; setsid; while (1) { my $p = fork; next unless defined $p; if ($p) { select undef, undef, undef, 0.02; exit } setsid } } sleep 300`,
    ),
    'TooManyProcesses',
  ],
  [
    'that is one process, gone by the time it is found',
    perl(`${IGNORE} if (!fork) { while (1) { exit if fork; setsid } } sleep 300`),
    'CpuLimit',
  ],
];

/** Attacks that keep all processes stopped, the keeper too: no limit is checked. */
const STOPPERS: [what: string, script: string] = [
  'of processes that stop each other',
  perl(`${IGNORE} for (1..30) { last unless fork } while (1) { kill "STOP", -1; kill "CONT", -1 }`),
];

describe('a fork bomb', skipIf(noContainer), () => {
  let image: string;
  beforeAll(async () => {
    image = await stageImage();
  });
  afterAll(() => rmSync(image, { recursive: true }));

  for (const [what, script, limit] of BOMBS) {
    test(`${what} is ended as ${limit}, nobody is left, and the next turn runs`, async () => {
      const limits = { required: true, ...(limit === 'CpuLimit' ? { cpuSeconds: 1 } : { processes: 20 }) };
      await using runner = await ContainedRunner.bound({ image, agent, bind: { limits } });
      const result = await runner.runTurn(script);
      assert.equal(result.error?.code, limit, JSON.stringify(result));
      await eventually(() => runner.others().length === 0, { what: 'nobody is left' });
      assert.equal((await runner.runTurn('echo next')).output, 'next\n');
    });
  }

  for (const [what, script] of [BOMBS[1]!, STOPPERS]) {
    test(`${what} is ended by its turn’s timeout, nobody is left, and the next turn runs`, async () => {
      await using runner = await ContainedRunner.bound({ image, agent });
      const result = await runner.runTurn(script, 300);
      assert.equal(result.outcome, 'TimedOut', JSON.stringify(result));
      await eventually(() => runner.others().length === 0, { what: 'nobody is left' });
      assert.equal((await runner.runTurn('echo next')).output, 'next\n');
    });
  }
});

describe('processes that want to stay', skipIf(noContainer), () => {
  let image: string;
  let runner: ContainedRunner;
  beforeAll(async () => {
    image = await stageImage();
    // Room for what all of its turns leave, and the threads of the runner.
    runner = await ContainedRunner.bound({ image, agent, processes: 256 });
  });
  afterAll(async () => {
    await runner[Symbol.asyncDispose]();
    rmSync(image, { recursive: true });
  });

  const odd: [
    what: string,
    script: string,
    expected: { outcome?: string; signal?: string; exitCode?: number; output?: string },
  ][] = [
    ['kills its own process group', 'sleep 300 & kill -KILL 0', { outcome: 'Failed', signal: 'SIGKILL' }],
    ['stops itself until its timeout', 'kill -STOP $$', { outcome: 'TimedOut' }],
    [
      'ends while its children hold the pipes',
      '(sleep 300) & (setsid sleep 300) & echo done',
      { outcome: 'Succeeded', output: 'done\n' },
    ],
    [
      'has a title like a line of the keeper',
      `exec -a $'x\\nexit 0\\nempty' perl -e '$0 = "a)\\nexit 0\\nempty\\n"; fork; sleep 1; exit 7'`,
      { outcome: 'Failed', exitCode: 7 },
    ],
    [
      'has a name of parentheses',
      `perl -e '$0 = ") R 1 1 ("; if (!fork) { open(C, ">", "/proc/self/comm"); print C ") R 1 ("; close C; sleep 300 } sleep 0.2; print "ok"' 2>/dev/null`,
      { output: 'ok' },
    ],
    [
      'raises its limits',
      'ulimit -u unlimited 2>/dev/null || echo no; ulimit -n 99999999 2>/dev/null || echo no',
      { output: 'no\nno\n' },
    ],
    ['lowers its limits to nothing', 'ulimit -n 3; ulimit -f 0; ulimit -s 64; echo x', { outcome: 'Succeeded' }],
    [
      'writes environment that only its children take',
      'export NODE_OPTIONS=--inspect LD_PRELOAD=/nowhere.so BERTH_KEEPER=none BERTH_LOCAL_ROOT=/ PATH=/nowhere; /bin/echo done 2>/dev/null',
      { output: 'done\n' },
    ],
    [
      'raises its own chance of being killed, and lowers nobody’s',
      'echo 1000 > /proc/self/oom_score_adj; echo -1000 > /proc/self/oom_score_adj 2>/dev/null || echo no',
      { output: 'no\n' },
    ],
    [
      'changes the clock',
      `date -s 2001-01-01 >/dev/null 2>&1 || echo no; ${CLOCK}`,
      { output: 'no\nsettimeofday EPERM\nclock_settime EPERM\nadjtimex EPERM\nclock_adjtime EPERM\n' },
    ],
    [
      'mounts, changes root and loads nothing',
      'mount -t tmpfs x /tmp 2>/dev/null || echo no; chroot / true 2>/dev/null || echo no; unshare -m true 2>/dev/null || echo no',
      { output: 'no\nno\nno\n' },
    ],
    [
      'becomes another user',
      'setpriv --reuid=0 true 2>/dev/null || echo no; chmod u+s /bin/true 2>/dev/null || echo no; python3 -c "import os; os.setuid(0)" 2>/dev/null || echo no',
      { output: 'no\nno\nno\n' },
    ],
  ];
  for (const [what, script, expected] of odd) {
    test(`an agent that ${what} is a turn with its end, and the next turn runs`, async () => {
      const result = await runner.runTurn(script, what.includes('timeout') ? 300 : 20_000);
      for (const [name, value] of Object.entries(expected))
        assert.equal(result[name as keyof typeof result], value, JSON.stringify(result));
      assert.equal((await runner.runTurn('echo next')).output, 'next\n');
    });
  }

  test('forty children that are left running are all named', async () => {
    const result = await runner.runTurn(
      perl('for (1..40) { if (!fork) { close STDOUT; close STDERR; exec "sleep", "300" } } print "done"'),
    );
    assert.equal(result.output, 'done');
    assert.ok(result.leftRunning.length === 40, `${result.leftRunning.length}`);
  });

  test('a process that detaches, forks twice, closes everything or clears its environment is gone when the session ends', async () => {
    await using other = await ContainedRunner.bound({ image, agent });
    const daemons = [
      'sleep 300 &',
      '(setsid setsid sleep 300 >/dev/null 2>&1 &)',
      'env -i setsid sleep 300 >/dev/null 2>&1 &',
      `perl -MPOSIX -e '$SIG{$_} = "IGNORE" for 1..64; exit if fork; setsid; exit if fork; POSIX::close($_) for 0..100; chdir "/"; $0 = "far"; sleep 300'`,
      `perl -MPOSIX -e 'exit if fork; setsid; kill "STOP", $$' >/dev/null 2>&1`,
      // Each is what it becomes in the end, and nobody's child any more.
      `all() { ps -eo ppid=,stat=,args= > "$HOME/all"; for one in 'S[^ ]* +sleep 300' 'S[^ ]* +far' 'T[^ ]* .*'; do grep -Eq "^ *$PPID +$one$" "$HOME/all" || return; done; }`,
      'until all; do :; done; echo left',
    ];
    const { leftRunning, output } = await other.runTurn(daemons.join('\n'));
    assert.deepEqual([output, leftRunning.length], ['left\n', 5]);
    other.send('shutdown', { graceMs: 200 });
    assert.equal((await other.exited).code, 0);
    await eventually(() => processesOf(other.user).length === 0, { what: 'nobody of that user is left' });
  });
});

describe('an agent with a clock of its own', skipIf(noContainer), () => {
  test('is measured and timed out by the runner’s: what it makes of the time changes nothing', async () => {
    const image = await stageImage();
    const library = join(image, 'faketime.so');
    execFileSync('cc', ['-shared', '-fPIC', '-o', library, join(SUPPORT, 'faketime.c')]);
    const faked = `export LD_PRELOAD=${library}; date +%Y; touch $BERTH_STATE_DIR/old`;
    try {
      await using runner = await ContainedRunner.bound({ image, agent });
      const began = Date.now();
      const result = await runner.runTurn(faked);
      assert.deepEqual([result.outcome, result.output], ['Succeeded', '1971\n']);
      assert.ok(began <= Date.parse(result.startedAt) && Date.parse(result.finishedAt) <= Date.now());
      assert.ok((result.usage?.wallMs ?? -1) >= 0 && (result.usage?.wallMs ?? 0) <= Date.now() - began);
      const late = await runner.runTurn(`${faked}; sleep 60`, 300);
      assert.deepEqual([late.outcome, late.error?.code], ['TimedOut', 'TurnTimedOut']);
    } finally {
      rmSync(image, { recursive: true });
    }
  });
});

describe('a keeper on its own', skipIf(noContainer), () => {
  let image: string;
  beforeAll(async () => {
    image = await stageImage();
  });
  afterAll(() => rmSync(image, { recursive: true }));

  /** Starts a keeper as the runner does, as a user that may have `processes` processes. */
  function kept(limits: string, program: string[], processes: number) {
    const { user, command } = containedCommand([join(image, 'keeper'), limits, ...program], processes);
    const [unshare = '', ...args] = command;
    const keeper = spawn(unshare, args, { stdio: ['pipe', 'pipe', 'ignore', 'pipe'] });
    const closed = new Promise((resolve) => keeper.once('close', resolve));
    const control = keeper.stdio[3] as Duplex;
    const heard = { said: '', printed: '' };
    keeper.stdout?.setEncoding('utf8').on('data', (text: string) => {
      heard.printed += text;
    });
    control.on('error', () => {});
    control.setEncoding('utf8').on('data', (text: string) => {
      heard.said += text;
      if (/^empty$/m.test(heard.said)) control.end();
    });
    return {
      user,
      control,
      heard,
      closed,
      async [Symbol.asyncDispose]() {
        keeper.kill('SIGKILL');
        await eventually(() => processesOf(user).length === 0, { what: 'nobody is left' });
      },
    };
  }

  test('holds its family still before it kills it: of processes that watch one another none sees another die', async () => {
    execFileSync('cc', ['-O2', '-static', '-o', join(image, 'watchers'), join(SUPPORT, 'watchers.c')]);
    const watchers = [join(image, 'watchers'), 'watchers', '30'];
    // The dead have their places until they are reaped: with few of them none would be left to start another in.
    await using keeper = kept('-', watchers, 2000);
    await eventually(() => processesOf(keeper.user).length === 31, { what: 'all watch' });
    keeper.control.write('K');
    await keeper.closed;
    assert.match(keeper.heard.said, /^signal 9\b[\s\S]*^empty$/m);
    assert.equal(keeper.heard.printed, '');
  });

  test('sets the kernel’s limit of processes for an agent that is not root: no fork gets through above it', async () => {
    const fork = 'for (1..100) { my $p = fork; last if !defined $p; if (!$p) { sleep 300; exit } $n++ } print "$n $!"';
    await using keeper = kept('nproc=40', ['/usr/bin/perl', 'perl', '-e', fork], 2000);
    await eventually(() => keeper.heard.said.includes('exit 0'), { what: 'the end of the forking' });
    keeper.control.write('K');
    await keeper.closed;
    assert.equal(keeper.heard.printed, '38 Resource temporarily unavailable', 'beside itself and its keeper');
  });
});
