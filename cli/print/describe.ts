import { formatDuration } from '../../core/resources/duration.ts';
import type { StoredSession, StoredTurn } from '../../core/resources/kinds.ts';
import { clip } from '../../core/resources/limits.ts';
import type { Condition } from '../../core/resources/schema.ts';
import type { SessionStatus } from '../../core/resources/session.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import type { Terminal } from '../cli.ts';
import { firstLines, lastLines } from './excerpt.ts';
import { filesText } from './print.ts';
import { hanging } from './printable.ts';
import { table } from './table.ts';

/** Sessions and turns for people: current activity, since when, and why not. */

const OUTPUT_BYTES = 60;

export function describeSession(session: StoredSession, turns: StoredTurn[], now: number, terminal?: Terminal): string {
  const { spec, status = {}, metadata } = session;
  const { agent = {} } = spec;
  const command = [...(agent.command ?? []), ...(agent.args ?? [])];
  const { state, turns: counts } = status;
  const facts: [string, string | undefined][] = [
    [
      'phase',
      `${status.phase ?? 'not seen by a controller yet'}${spec.suspend ? ' (held: berth resume lets it go on)' : ''}`,
    ],
    ['class', spec.class],
    ['parent', spec.parent?.name],
    ['program', command.length ? command.map(quoted).join(' ') : 'the class’s'],
    ['directory', agent.workingDir],
    ['pod', status.podName ?? 'none'],
    ['incarnation', status.incarnation === undefined ? undefined : String(status.incarnation)],
    ['waiting', status.queue && waiting(status.queue, now)],
    ['state', state ? `${state.bytes} bytes, stored by incarnation ${state.incarnation}` : 'none yet'],
    ['turns', counts ? `${counts.total} ended: ${counts.succeeded} succeeded, ${counts.failed} failed` : undefined],
    ['active', status.lastActiveAt ? `${since(status.lastActiveAt, now)} ago` : undefined],
    ['requester', spec.requester],
    ['age', since(metadata.creationTimestamp, now)],
  ];
  return [
    `${metadata.namespace}/${metadata.name}\n`,
    ...lines(facts),
    ...conditionTable(status.conditions, now, terminal),
    ...turnTable(turns, now, terminal),
  ].join('');
}

/** Describes the wait of a queued session: reason, time, queue position, and the holder of the missing resource. */
function waiting(
  { reason, since: from, position, holders = [] }: NonNullable<SessionStatus['queue']>,
  now: number,
): string {
  const place = position === undefined ? '' : `, number ${position} in the queue`;
  const held = holders.map((holder) => `${holder.name} (for ${since(holder.since, now)})`).join(', ');
  return `${reason}, for ${since(from, now)}${place}${held && `; slots are held by ${held}`}`;
}

export function describeTurn(
  turn: StoredTurn,
  { output, log }: { output: unknown; log: string },
  now: number,
  terminal?: Terminal,
): string {
  const { spec, status = {}, metadata } = turn;
  const facts: [string, string | undefined][] = [
    ['session', spec.session],
    ['index', status.index === undefined ? undefined : String(status.index)],
    [
      'phase',
      `${status.phase ?? 'not seen by a controller yet'}${spec.cancel && !isTerminal(status.phase) ? ' (cancellation asked for)' : ''}`,
    ],
    ['attempt', attempt(turn)],
    ['took', took(turn, now)],
    ...asks(turn, now),
    ['error', status.error ? `${status.error.code}: ${status.error.message}` : undefined],
    ['exit code', status.exitCode === undefined ? undefined : String(status.exitCode)],
    ['artifacts', artifactsOf(turn)],
    [
      'redactions',
      status.redactions ? `${status.redactions} in output, metadata, events, questions and artifacts` : undefined,
    ],
    ['used', status.usage && `${used(status.usage)}${isTerminal(status.phase) ? '' : ' so far'}`],
    ['incarnation', status.incarnation === undefined ? undefined : String(status.incarnation)],
    ['requester', spec.requester],
    ['age', since(metadata.creationTimestamp, now)],
  ];
  const whole = `berth get turn ${metadata.name} -o yaml`;
  const block = (title: string, text: string) => (text === '' ? '' : `\n${title}\n${indented(text)}`);
  return [
    `${metadata.namespace}/${metadata.name}\n`,
    ...lines(facts),
    ...conditionTable(status.conditions, now, terminal),
    block('INPUT', firstLines(JSON.stringify(spec.input ?? null, null, 2), whole)),
    block('OUTPUT', output === undefined ? '' : firstLines(inLines(output), whole)),
    block('LOG', lastLines(log, `berth logs ${spec.session} --turn ${metadata.name}`)),
  ].join('');
}

/** Describes what the turn has left in BERTH_OUTPUT_DIR. */
function artifactsOf({ metadata, spec, status }: StoredTurn): string | undefined {
  const { artifacts = [], artifactsLeftOut } = status ?? {};
  if (artifacts.length === 0 && !artifactsLeftOut) return undefined;
  const bytes = artifacts.reduce((sum, artifact) => sum + artifact.bytes, 0);
  const without = artifactsLeftOut ? `, ${artifactsLeftOut.count} left out` : '';
  return `${filesText(artifacts.length)} of ${bytes} bytes${without} (berth artifacts list ${spec.session} --turn ${metadata.name})`;
}

/** Describes the turn's last question and the decision. */
function asks({ metadata, status }: StoredTurn, now: number): [string, string | undefined][] {
  const { approval, phase } = status ?? {};
  if (!approval) return [];
  const { decided } = approval;
  const facts: [string, string | undefined][] = [
    ['asks', `${approval.prompt} (request ${approval.id}, ${since(approval.since, now)} ago)`],
    ['shows', approval.payload === undefined ? undefined : JSON.stringify(approval.payload)],
  ];
  if (decided) {
    const answer = decided.response === undefined ? '' : ` ${JSON.stringify(decided.response)}`;
    const who = `${decided.by ? `by ${decided.by}, ` : ''}Approval ${decided.approval}`;
    return [...facts, ['decided', `${decided.decision}${answer}${decided.note ? `: ${decided.note}` : ''} (${who})`]];
  }
  if (phase === 'AwaitingApproval') facts.push(['decide', `berth approve ${metadata.name} [--deny]`]);
  return facts;
}

/** Shows the attempt if there was, or can be, more than one. */
function attempt({ spec, status }: StoredTurn): string | undefined {
  const most = spec.retry?.maxAttempts ?? 1;
  return most > 1 ? `${status?.attempt ?? 0} of ${most}` : undefined;
}

function lines(facts: [string, string | undefined][]): string[] {
  return facts.flatMap(([name, value]) =>
    value === undefined ? [] : [`  ${name.padEnd(12)}${hanging(value, ' '.repeat(14))}\n`],
  );
}

function conditionTable(conditions: Condition[] | undefined, now: number, terminal?: Terminal): string[] {
  if (!conditions?.length) return [];
  const rows = conditions.map(({ type, status, reason, lastTransitionTime, message }) => [
    type,
    status,
    reason,
    since(lastTransitionTime, now),
    message,
  ]);
  return ['\n', table([['CONDITION', 'STATUS', 'REASON', 'FOR', 'MESSAGE'], ...rows], { terminal, wraps: true })];
}

function turnTable(turns: StoredTurn[], now: number, terminal?: Terminal): string[] {
  if (turns.length === 0) return [];
  const rows = turns.map((turn) => [
    String(turn.status?.index ?? ''),
    turn.metadata.name,
    turn.status?.phase ?? '',
    took(turn, now) ?? '',
    result(turn),
  ]);
  return ['\n', table([['TURN', 'NAME', 'PHASE', 'TOOK', 'RESULT'], ...rows], { terminal })];
}

function result({ status }: StoredTurn): string {
  if (status?.error) return clip(`${status.error.code}: ${oneLine(status.error.message)}`, OUTPUT_BYTES);
  if (status?.outputRef) return `${status.outputBytes ?? ''} bytes`.trim();
  if (status?.output === undefined) return '';
  return clip(oneLine(JSON.stringify(status.output)), OUTPUT_BYTES);
}

/** Duration of the turn; until now while it is running. */
function took({ status }: StoredTurn, now: number): string | undefined {
  const runs = status?.conditions?.find((one) => one.type === 'Running' && one.status === 'True');
  const start = status?.startedAt ?? runs?.lastTransitionTime;
  if (start === undefined) return undefined;
  const end = status?.finishedAt ? Date.parse(status.finishedAt) : now;
  return formatDuration(Math.max(0, end - Date.parse(start)));
}

/** Formats usage, for example `1.2 s of CPU, at most 41.3 MiB and 3 processes, in 4.5 s`. */
function used({
  wall,
  cpuSeconds,
  peakMemoryBytes,
  processes,
}: NonNullable<NonNullable<StoredTurn['status']>['usage']>) {
  const seconds = (amount: number) => `${Number(amount.toFixed(amount < 10 ? 2 : 0))} s`;
  if (cpuSeconds === undefined || peakMemoryBytes === undefined) return seconds(wall);
  const memory = `${(peakMemoryBytes / 2 ** 20).toFixed(1)} MiB`;
  const count = processes === 1 ? '1 process' : `${processes} processes`;
  return `${seconds(cpuSeconds)} of CPU, at most ${memory} and ${count}, in ${seconds(wall)}`;
}

const since = (at: string, now: number) => formatDuration(Math.max(0, now - Date.parse(at)));
const inLines = (output: unknown) => (typeof output === 'string' ? output : JSON.stringify(output, null, 2));
const oneLine = (text: string) => text.replace(/\s+/g, ' ');
const indented = (text: string) => `${text.trimEnd().replace(/^/gm, '  ')}\n`;
const quoted = (word: string) => (/^[\w@%+=:,./$()-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
