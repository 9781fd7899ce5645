import { type Bug, PLAIN } from './bug.ts';

/** Mistakes in what becomes of a run: its result, its log, its time, its order. */
export const outcomeBugs: readonly Bug[] = [
  {
    name: 'acknowledge before commit of a request',
    caughtBy: ['committed first'],
    within: 200,
    edits: [
      {
        file: 'controller/act/approval.ts',
        find: '    : awaiting(turn, request, fields, now);',
        replace: `    : awaiting(turn, request, fields, now);
  effects.links.get(turn.status.podUID)?.acknowledge(seq);`,
      },
    ],
  },
  {
    name: 'a success with stored output told as a failure',
    caughtBy: ['told truly'],
    within: 200,
    edits: [
      {
        file: 'controller/status/outcome.ts',
        find: '  const [problem] = problems;',
        replace:
          "  const [problem] = stored.outputRef ? [{ reason: 'StoreFull' as const, message: 'no room' }] : problems;",
      },
    ],
  },
  {
    name: 'every log of a turn dropped',
    caughtBy: ['log kept'],
    within: 200,
    edits: [
      {
        file: 'controller/act/store-delivery.ts',
        find: '  const log = delivery.log;',
        replace: '  const log = void 0;',
      },
    ],
  },
  {
    name: 'the log of an ended container never read',
    caughtBy: ['told truly'],
    within: 200,
    focus: { misfortunes: ['a pod is killed'], misfortuneEveryMs: 2000, podRates: { logLost: 0 }, rates: { log: 0 } },
    edits: [
      {
        file: 'controller/act/read-log.ts',
        find: '    return Buffer.concat(pieces);',
        replace: '    return undefined;',
      },
    ],
  },
  {
    name: 'turns given a tenth of their timeout',
    caughtBy: ['in time', 'granted'],
    within: 200,
    edits: [
      {
        file: 'controller/link/requests.ts',
        find: "() => this.#options.lines.send('turn', turn)",
        replace: "() => this.#options.lines.send('turn', { ...turn, timeoutMs: Math.ceil(turn.timeoutMs / 10) })",
      },
    ],
  },
  {
    name: 'a late answer that has an ended turn run',
    caughtBy: ['given up for work'],
    within: 200,
    focus: { deedEveryMs: 300, deeds: ['delete a turn'], podRates: { breaks: 0.15 } },
    edits: [
      {
        file: 'controller/link/requests.ts',
        find: '    this.#changeNumber = number;\n',
        replace: '    void number;\n',
      },
      {
        file: 'controller/link/requests.ts',
        find: '      // The refused cancel shows that its turn does not run; a ping asks which one does.\n      heartbeat.ping();\n',
        replace: '',
      },
      {
        file: 'controller/link/requests.ts',
        find: '      if (this.#turnNumber < message.n) shown.view = after.cancelRefused(shown.view, cancelled, message.code);\n',
        replace: '',
      },
    ],
  },
  {
    name: 'a state that was not stored is acknowledged',
    caughtBy: ['committed first'],
    within: 200,
    edits: [
      {
        file: 'controller/act/commit.ts',
        find: '  if (kept) effects.links',
        replace: '  if (kept || podUID) effects.links',
      },
    ],
  },
  {
    name: 'every failure told with the same code',
    caughtBy: ['told truly'],
    within: 200,
    edits: [
      {
        file: 'controller/status/outcome.ts',
        find: '  const reason = known(message.error?.code) ??',
        replace: '  void known;\n  const reason =',
      },
    ],
  },
  {
    name: 'the exit code left out',
    caughtBy: ['told truly'],
    within: 200,
    edits: [
      {
        file: 'controller/status/outcome.ts',
        find: 'defined({ exitCode, ',
        replace: 'defined({ ',
      },
    ],
  },
  {
    name: 'metadata of any size taken',
    caughtBy: ['told truly'],
    within: 200,
    edits: [
      {
        file: 'controller/status/outcome.ts',
        find: '  if (!metadataFits) {',
        replace: '  if (metadataFits === undefined) {',
      },
    ],
  },
  {
    name: 'the time of a turn goes on while it waits for a decision',
    caughtBy: ['in time'],
    within: 200,
    focus: { deeds: ['decide on a request'] },
    edits: [
      {
        file: 'runner/turn/turn.ts',
        find: '        if (waiting) this.#timeStands();',
        replace: '        if (waiting) return;',
      },
    ],
  },
  {
    name: 'a turn that ends as undecided without a look at the decisions that there are',
    caughtBy: ['decided in time'],
    within: 200,
    focus: {
      pools: false,
      deeds: ['decide on a request'],
      deedEveryMs: 400,
      rates: { watchStalled: 0.5 },
      session: {
        timeouts: { start: '60s', turn: '60s', idle: '60s', approval: '5s', persist: '60s', lifetime: '99m' },
      },
    },
    edits: [
      {
        file: 'controller/decide/policies/approval.ts',
        find: 'if (world.memory.approvalsReadFor !== approval.id) {',
        replace: "if (approval.id === '') {",
      },
    ],
  },
  {
    name: 'time in which all machines slept counts as time to start, and to run',
    caughtBy: ['in time'],
    within: 200,
    focus: { misfortunes: ['hours pass unnoticed'], misfortuneEveryMs: 3000, pools: false },
    edits: [
      {
        file: 'controller/observed/clock-jumps.ts',
        find: '(heardAt <= until ? sum + ms : sum)',
        replace: '(heardAt <= until ? sum + Math.min(0, ms) : sum)',
      },
    ],
  },
  {
    name: 'the time of a turn begins anew with each decision',
    caughtBy: ['in time'],
    within: 200,
    // Turns that are short beside what their agents do before they ask.
    focus: {
      deeds: ['decide on a request'],
      deedEveryMs: 300,
      session: { timeouts: { start: '120s', turn: '8s', approval: '60s' } },
    },
    edits: [
      {
        file: 'runner/turn/turn.ts',
        find: "    const ranMs = 'approval' in message ? message.ranMs : 0;",
        replace: '    const ranMs = 0;',
      },
    ],
  },
  {
    name: 'one attempt too many',
    caughtBy: ['starts once'],
    within: 200,
    focus: { misfortunes: ['a pod is killed'], misfortuneEveryMs: 2000 },
    edits: [
      {
        file: 'controller/decide/loss.ts',
        find: '(turn.status.attempt ?? 1) < (turn.spec.retry?.maxAttempts ?? 1)',
        replace: '(turn.status.attempt ?? 1) <= (turn.spec.retry?.maxAttempts ?? 1)',
      },
    ],
  },
  {
    name: 'the wait for a decision counted from the creation of the turn',
    caughtBy: ['granted'],
    within: 200,
    edits: [
      {
        file: 'controller/decide/policies/approval.ts',
        find: 'const deadline = Date.parse(approval.since)',
        replace: 'const deadline = Date.parse(turn.metadata.creationTimestamp)',
      },
    ],
  },
  {
    name: 'places in the order given from the first on again',
    caughtBy: ['one order', 'in order'],
    within: 200,
    edits: [
      {
        file: 'controller/decide/policies/turns.ts',
        find: '  let last = draft.turns.lastIndex;',
        replace: '  let last = live.length - live.length;',
      },
    ],
  },
  {
    name: 'a frame that is torn is not asked for again',
    caughtBy: ['given up for silence', 'settles', 'works'],
    within: 200,
    focus: { podRates: { breaks: 0.1 } },
    edits: [
      {
        file: 'core/frames/sender.ts',
        find: '    this.#rewind = Math.max(1, Math.min(from, this.#rewind ?? from));',
        replace: '    void from;',
      },
    ],
  },
  {
    name: 'parts of a message put together backwards',
    caughtBy: ['is true', 'forward', 'settles', 'told truly'],
    within: 200,
    edits: [
      {
        file: 'core/frames/assembly.ts',
        find: 'Buffer.concat(this.#parts.slice(1) as Buffer[], this.#bytes)',
        replace: 'Buffer.concat(this.#parts.slice(1).reverse() as Buffer[], this.#bytes)',
      },
    ],
  },
  {
    name: 'a program of any image let run before its turn is',
    caughtBy: ['starts once'],
    within: 200,
    focus: { onlyAnyImage: true },
    edits: [
      {
        file: 'controller/decide/policies/runnerless.ts',
        find: '  if (!turn && !begins) return undefined;',
        replace: '  void begins;',
      },
    ],
  },
  {
    name: 'a program whose image could not be had is told as one that never ran before its pod has ended',
    caughtBy: ['told truly'],
    within: 200,
    focus: {
      onlyAnyImage: true,
      deedEveryMs: 300,
      misfortunes: [],
      maxRunning: 20,
      podRates: { image: 0.4, slow: 0.9 },
      session: { timeouts: { start: '2s', turn: '10s' } },
    },
    edits: [
      {
        file: 'controller/decide/policies/starting.ts',
        find: 'return isRunnerless(draft) ? mayRunUnseen(draft, pod) : mayBeGiven(draft, pod);',
        replace: 'return isRunnerless(draft) && podProblem(pod) ? undefined : mayBeGiven(draft, pod);',
      },
    ],
  },
  {
    name: 'a container that could not be started is taken for one that ended by itself',
    caughtBy: ['tried again'],
    within: 200,
    focus: { podRates: { crash: 0.3 } },
    edits: [
      {
        file: 'controller/decide/policies/starting.ts',
        find: ' && !wasKilled && !couldNotStart(pod);',
        replace: ' && !wasKilled;',
      },
    ],
  },
  {
    name: 'a pod that took turns counts as a failed start once it is gone',
    caughtBy: ['tried again'],
    within: 200,
    focus: { podRates: { crash: 0.4 }, misfortunes: ['a pod is killed'], misfortuneEveryMs: 1500, ...PLAIN },
    edits: [
      {
        file: 'controller/reconcile.ts',
        find: "    if (bound) learn(memory, { fact: 'PodBound', podUID: bound });\n",
        replace: '    void bound;\n',
      },
    ],
  },
  {
    name: 'the exit code of a program of any image not asked for',
    caughtBy: ['told truly'],
    within: 200,
    focus: { onlyAnyImage: true },
    edits: [
      {
        file: 'controller/act/commit-log.ts',
        find: '  const exitCode = lost ? undefined : terminated?.exitCode;',
        replace: '  const exitCode = lost ? undefined : 0 * (terminated?.exitCode ?? 0);',
      },
    ],
  },
  {
    name: 'a program of any image stopped before its time',
    caughtBy: ['in time'],
    within: 200,
    focus: { onlyAnyImage: true },
    edits: [
      {
        file: 'controller/decide/policies/runnerless.ts',
        find: 'const deadline = waitedSince(draft, Date.parse(startedAt)) + turnMs;',
        replace: 'const deadline = waitedSince(draft, Date.parse(startedAt)) + turnMs / 10;',
      },
    ],
  },
  {
    name: 'the result of an earlier turn taken from the log of an ended container',
    caughtBy: ['told truly'],
    within: 200,
    focus: {
      misfortunes: ['a pod is killed', 'a controller is killed'],
      misfortuneEveryMs: 1500,
      deedEveryMs: 400,
      podRates: { logLost: 0 },
      rates: { log: 0 },
    },
    edits: [{ file: 'controller/link/receiver.ts', find: '      this.#inbox.keepLast();\n', replace: '' }],
  },
  {
    name: 'a state that is packed while the session’s processes write',
    caughtBy: ['of one moment'],
    within: 200,
    focus: PLAIN,
    edits: [
      {
        file: 'runner/limits/meter.ts',
        find: '    if (!holds || this.#all.length + this.#starting.size === 0) return work(ALL_STOPPED);',
        replace: '    if (!holds || this.#all.length < 1_000) return work(ALL_STOPPED);',
      },
    ],
  },
  {
    name: 'a suspension that packs while the session’s processes write',
    caughtBy: ['of one moment'],
    within: 200,
    focus: PLAIN,
    edits: [
      {
        file: 'runner/session/session.ts',
        find: '        await meter.whileHeld((unstopped) => {',
        replace: '        await Promise.resolve({ named: [], count: 0 }).then((unstopped) => {',
      },
    ],
  },
];
