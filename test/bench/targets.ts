/** Targets of the benchmark, in the order of its table. */

/** Limit of one statistic of a row: `factor` × (sum of the floors' medians × their weights) + `plus`. */
export interface Bound {
  /** Statistic of the row's values that is judged. */
  share: 0.5 | 0.99;
  factor?: number;
  /** Weight of each floor. Without floors the limit is `plus`. */
  floors?: Readonly<Record<string, number>>;
  plus?: number;
  /** True where more is better. */
  atLeast?: boolean;
}

export type Unit = 'ms' | 's' | 'MB' | 'writes' | '/s' | '×';

/** Measurements of agent-sandbox beside which a row stands. */
export type PeerRow = 'cold' | 'warm' | 'burst' | 'sustained';

interface TargetShape {
  id: string;
  what: string;
  unit: Unit;
  bounds: readonly Bound[];
  peer?: PeerRow;
}

/** Bounds of the command line, which hold on any cluster. */
const CLI_LIST = [{ share: 0.5, factor: 1.5, floors: { 'kubectl get': 1 } }] as const;
const CLI_TURN = [{ share: 0.5, factor: 1, floors: { 'turn round trip': 1 }, plus: 120 }] as const;
/** Bounds of work inside a session, which hold on any cluster. */
const COMMAND = [{ share: 0.5, factor: 1.5, floors: { 'true by pods/exec': 1 } }] as const;
const COMMAND_OUTPUT = [{ share: 0.5, factor: 1, floors: { 'kubectl exec cat': 1 } }] as const;
const COMMAND_INPUT = [{ share: 0.5, factor: 1, floors: { 'kubectl exec -i': 1 } }] as const;
const FILES = [{ share: 0.5, factor: 1, floors: { 'kubectl cp': 1 } }] as const;
const WARM = { 'F-write': 2, 'F-attach': 1, 'F-spawn': 1 };
const TURN = { 'F-write': 1, 'F-attach': 1, 'F-spawn': 1 };

const LIST = [
  {
    id: 'cold',
    what: 'cold create → first turn’s result durable and seen',
    unit: 'ms',
    bounds: [
      { share: 0.5, factor: 1.2, floors: { 'F-container': 1, 'F-node': 1, 'F-write': 2 } },
      { share: 0.5, factor: 0.9, floors: { bare: 1 } },
    ],
    peer: 'cold',
  },
  {
    id: 'warm',
    what: 'warm create → first turn’s result durable and seen',
    unit: 'ms',
    bounds: [
      { share: 0.5, factor: 1.25, floors: WARM },
      { share: 0.99, factor: 4, floors: WARM },
    ],
    peer: 'warm',
  },
  {
    id: 'wake',
    what: 'wake of a suspended session with 1 MiB of state onto a warm pod',
    unit: 'ms',
    bounds: [{ share: 0.5, factor: 1.25, floors: { ...WARM, 'F-restore': 1 } }],
  },
  {
    id: 'burst',
    what: '30 at once from a pool of 30: all results durable',
    unit: 'ms',
    bounds: [{ share: 0.5, factor: 0.8, floors: { 'agent-sandbox': 1 } }],
    peer: 'burst',
  },
  {
    id: 'sustained',
    what: 'claims at 0.8 × the nodes’ start rate for 20 s, pool of 20: p50 of the second half ÷ that of the first',
    unit: '×',
    bounds: [{ share: 0.5, plus: 2 }],
    peer: 'sustained',
  },
  {
    id: 'drained',
    what: 'create with a drained pool → first turn’s result durable and seen',
    unit: 'ms',
    bounds: [{ share: 0.5, factor: 1, floors: { cold: 1 } }],
  },
  {
    id: 'turn',
    what: 'turn on a ready session, create → result durable and seen',
    unit: 'ms',
    bounds: [
      { share: 0.5, factor: 1.25, floors: TURN },
      { share: 0.99, factor: 4, floors: TURN },
    ],
  },
  {
    id: 'turn-idle',
    what: 'the same after its attach was closed',
    unit: 'ms',
    bounds: [{ share: 0.5, factor: 1, floors: { 'turn, attach open': 1, 'F-attach': 1 }, plus: 20 }],
  },
  {
    id: 'writes-turn',
    what: 'API writes of a turn on a ready session in a burst, beside its creation',
    unit: 'writes',
    bounds: [{ share: 0.5, plus: 1.2 }],
  },
  {
    id: 'writes-life',
    what: 'API writes of the controller for a session’s life with one turn, on a warm pod',
    unit: 'writes',
    bounds: [{ share: 0.5, plus: 6 }],
  },
  {
    id: 'throughput',
    what: 'turns a second over 20 sessions',
    unit: '/s',
    bounds: [{ share: 0.5, factor: 0.6, floors: { 'status patches a second ÷ writes of a turn': 1 }, atLeast: true }],
  },
  {
    id: 'controller-memory',
    what: 'memory of the controller',
    unit: 'MB',
    bounds: [{ share: 0.5, factor: 1, floors: { '120 MB + 10 KB a session + 130 KB an open attach': 1 } }],
  },
  {
    id: 'leader-one',
    what: 'kill -9 of the leader in a fresh pod, one replica → first result of the next new session',
    unit: 's',
    bounds: [{ share: 0.5, plus: 6 }],
  },
  {
    id: 'leader-two',
    what: 'the same with two replicas (lease 15 s)',
    unit: 's',
    bounds: [{ share: 0.5, plus: 18 }],
  },
  { id: 'runner-memory', what: 'memory of a session’s runner', unit: 'MB', bounds: [{ share: 0.5, plus: 50 }] },
  {
    id: 'runner-start',
    what: 'start of a runner at one CPU → ready',
    unit: 'ms',
    bounds: [{ share: 0.5, factor: 1.8, floors: { 'node -e 0 at one CPU': 1 } }],
  },
  {
    id: 'server',
    what: 'request to a Server agent, in the runner alone',
    unit: 'ms',
    bounds: [
      { share: 0.5, factor: 1, floors: { 'the process’s own answer': 1 }, plus: 2 },
      { share: 0.5, factor: 1, floors: { 'driver Command': 1 } },
    ],
  },
  { id: 'cli-list', what: 'berth list, whole process', unit: 'ms', bounds: CLI_LIST },
  { id: 'cli-turn', what: 'berth turn on a ready session, whole process', unit: 'ms', bounds: CLI_TURN },
  {
    id: 'cli-list-embedded',
    what: 'berth list on the embedded cluster, whole process',
    unit: 'ms',
    bounds: CLI_LIST,
  },
  {
    id: 'cli-turn-embedded',
    what: 'berth turn on a ready session of the embedded cluster, whole process',
    unit: 'ms',
    bounds: CLI_TURN,
  },
  { id: 'command', what: 'true as a command of a session, by the API', unit: 'ms', bounds: COMMAND },
  {
    id: 'command-output',
    what: '100 MB of a command’s output by berth exec, whole process',
    unit: 'ms',
    bounds: COMMAND_OUTPUT,
  },
  {
    id: 'command-input',
    what: '100 MB of a command’s input by berth exec, whole process',
    unit: 'ms',
    bounds: COMMAND_INPUT,
  },
  { id: 'files-out', what: 'a file of 100 MB from a session by berth cp, whole process', unit: 'ms', bounds: FILES },
  { id: 'files-in', what: 'a file of 100 MB into a session by berth cp, whole process', unit: 'ms', bounds: FILES },
  {
    id: 'command-embedded',
    what: 'true as a command of a session on the embedded cluster, by the API',
    unit: 'ms',
    bounds: COMMAND,
  },
  {
    id: 'command-output-embedded',
    what: '100 MB of a command’s output by berth exec on the embedded cluster, whole process',
    unit: 'ms',
    bounds: COMMAND_OUTPUT,
  },
  {
    id: 'command-input-embedded',
    what: '100 MB of a command’s input by berth exec on the embedded cluster, whole process',
    unit: 'ms',
    bounds: COMMAND_INPUT,
  },
  {
    id: 'files-out-embedded',
    what: 'a file of 100 MB from a session by berth cp on the embedded cluster, whole process',
    unit: 'ms',
    bounds: FILES,
  },
  {
    id: 'files-in-embedded',
    what: 'a file of 100 MB into a session by berth cp on the embedded cluster, whole process',
    unit: 'ms',
    bounds: FILES,
  },
  {
    id: 'environment-build',
    what: 'environment of numpy and pandas: build',
    unit: 'ms',
    bounds: [{ share: 0.5, factor: 1.3, floors: { 'uv pip install': 1 } }],
  },
  {
    id: 'environment-unpack',
    what: 'environment of numpy and pandas: unpack',
    unit: 'ms',
    bounds: [{ share: 0.5, factor: 1.3, floors: { tar: 1 } }],
  },
  {
    id: 'snapshot',
    what: 'snapshot at a turn’s end, 10 changed files of 20,000',
    unit: 'ms',
    bounds: [{ share: 0.5, factor: 0.05, floors: { 'all changed': 1 } }],
  },
  {
    id: 'hostile',
    what: 'turn with 1 MB of state on the embedded cluster beside 29 hostile pods',
    unit: 'ms',
    bounds: [{ share: 0.5, factor: 2, floors: { 'turn without them': 1 } }],
  },
  {
    id: 'demo',
    what: 'make demo on a fresh clone, dependencies cached',
    unit: 's',
    bounds: [{ share: 0.5, plus: 20 }],
  },
] as const satisfies readonly TargetShape[];

export type TargetId = (typeof LIST)[number]['id'];

export type Target = TargetShape & { id: TargetId };

export const TARGETS: readonly Target[] = LIST;

const amount = (value: number, unit: Unit) => (unit === '×' ? `${value}` : `${value} ${unit}`);

/** Sum of floors as text, in parentheses where a factor precedes it. */
export function floorText({ floors = {} }: Bound): string {
  return Object.entries(floors)
    .map(([name, weight]) => (weight === 1 ? name : `${weight} ${name}`))
    .join(' + ');
}

/** Bound as text, for example "p50 ≤ 1.2 × (F-container + F-node + 2 F-write)". */
export function boundText(bound: Bound, unit: Unit): string {
  const { share, factor = 1, plus, atLeast } = bound;
  const sum = floorText(bound);
  const scaled = sum && factor !== 1 ? `${factor} × ${/ [+÷] /.test(sum) ? `(${sum})` : sum}` : sum;
  const limit = [scaled, plus === undefined ? '' : amount(plus, unit)].filter(Boolean).join(' + ');
  return `p${share * 100} ${atLeast ? '≥' : '≤'} ${limit}`;
}
