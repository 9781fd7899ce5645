import { formatDuration } from '../core/resources/duration.ts';
import type { StoredSession, StoredTurn } from '../core/resources/kinds.ts';
import { clip } from '../core/resources/limits.ts';
import type { Condition } from '../core/resources/schema.ts';
import { table } from './print.ts';

/** Sessions and turns for people: what is it doing, since when, why not. */

const OUTPUT_BYTES = 60;

export function describeSession(session: StoredSession, turns: StoredTurn[], now: number): string {
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
    ['program', command.length ? command.map(quoted).join(' ') : 'the class’s'],
    ['directory', agent.workingDir],
    ['pod', status.podName ?? 'none'],
    ['incarnation', status.incarnation === undefined ? undefined : String(status.incarnation)],
    ['waiting', status.queue ? `${status.queue.reason}, for ${since(status.queue.since, now)}` : undefined],
    ['state', state ? `${state.bytes} bytes, stored by incarnation ${state.incarnation}` : 'none yet'],
    ['turns', counts ? `${counts.total} ended: ${counts.succeeded} succeeded, ${counts.failed} failed` : undefined],
    ['active', status.lastActiveAt ? `${since(status.lastActiveAt, now)} ago` : undefined],
    ['age', since(metadata.creationTimestamp, now)],
  ];
  return [
    `${metadata.namespace}/${metadata.name}\n`,
    ...lines(facts),
    ...conditionTable(status.conditions, now),
    ...turnTable(turns, now),
  ].join('');
}

export function describeTurn(turn: StoredTurn, { output, log }: { output: unknown; log: string }, now: number): string {
  const { spec, status = {}, metadata } = turn;
  const facts: [string, string | undefined][] = [
    ['session', spec.session],
    ['index', status.index === undefined ? undefined : String(status.index)],
    ['phase', `${status.phase ?? 'not seen by a controller yet'}${spec.cancel ? ' (cancellation asked for)' : ''}`],
    ['took', took(turn, now)],
    ['error', status.error ? `${status.error.code}: ${status.error.message}` : undefined],
    ['exit code', status.exitCode === undefined ? undefined : String(status.exitCode)],
    ['incarnation', status.incarnation === undefined ? undefined : String(status.incarnation)],
    ['age', since(metadata.creationTimestamp, now)],
  ];
  const block = (title: string, text: string) => (text === '' ? '' : `\n${title}\n${indented(text)}`);
  return [
    `${metadata.namespace}/${metadata.name}\n`,
    ...lines(facts),
    ...conditionTable(status.conditions, now),
    block('INPUT', JSON.stringify(spec.input ?? null, null, 2)),
    block('OUTPUT', output === undefined ? '' : typeof output === 'string' ? output : JSON.stringify(output, null, 2)),
    block('LOG', log),
  ].join('');
}

function lines(facts: [string, string | undefined][]): string[] {
  return facts.flatMap(([name, value]) => (value === undefined ? [] : [`  ${name.padEnd(12)}${value}\n`]));
}

function conditionTable(conditions: Condition[] | undefined, now: number): string[] {
  if (!conditions?.length) return [];
  const rows = conditions.map(({ type, status, reason, lastTransitionTime, message }) => [
    type,
    status,
    reason,
    since(lastTransitionTime, now),
    message,
  ]);
  return ['\n', table([['CONDITION', 'STATUS', 'REASON', 'FOR', 'MESSAGE'], ...rows])];
}

function turnTable(turns: StoredTurn[], now: number): string[] {
  if (turns.length === 0) return [];
  const rows = turns.map((turn) => [
    String(turn.status?.index ?? ''),
    turn.metadata.name,
    turn.status?.phase ?? '',
    took(turn, now) ?? '',
    result(turn),
  ]);
  return ['\n', table([['TURN', 'NAME', 'PHASE', 'TOOK', 'RESULT'], ...rows])];
}

function result({ status }: StoredTurn): string {
  if (status?.error) return clip(`${status.error.code}: ${oneLine(status.error.message)}`, OUTPUT_BYTES);
  if (status?.outputRef) return `${status.outputBytes ?? ''} bytes`.trim();
  if (status?.output === undefined) return '';
  return clip(oneLine(JSON.stringify(status.output)), OUTPUT_BYTES);
}

function took({ status }: StoredTurn, now: number): string | undefined {
  if (!status?.startedAt) return undefined;
  const end = status.finishedAt ? Date.parse(status.finishedAt) : now;
  return formatDuration(Math.max(0, end - Date.parse(status.startedAt)));
}

const since = (at: string, now: number) => formatDuration(Math.max(0, now - Date.parse(at)));
const oneLine = (text: string) => text.replace(/\s+/g, ' ');
const indented = (text: string) => `${text.trimEnd().replace(/^/gm, '  ')}\n`;
const quoted = (word: string) => (/^[\w@%+=:,./$()-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
