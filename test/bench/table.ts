/** The tables of the benchmark as Markdown: pure functions. */
import { floorOf, limitOf, type Measured, type Series, type Unmeasured, verdict } from './judge.ts';
import { median, percentile } from './statistics.ts';
import { boundText, floorText, type PeerRow, type Target, type Unit } from './targets.ts';

export interface PeerMeasured {
  values: readonly number[];
  note: string;
}

/** Measurements of agent-sandbox; a text says why there are none. */
export type Peer = Partial<Record<PeerRow, PeerMeasured>> | string;

/** Measurements of two sections: those of either, or the last reason where neither has any. */
export function joined(a: Peer, b: Peer): Peer {
  if (typeof b === 'string') return typeof a === 'string' ? b : a;
  return typeof a === 'string' ? b : { ...a, ...b };
}

export function shown(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

const MINUS = '−';

/** Signed number with the minus sign of a text. */
export const signed = (value: number) => `${value < 0 ? MINUS : '+'}${shown(Math.abs(value))}`;

/** Median, quartiles and number of samples, in a cell; with the p99 if it is asked for. */
export function spread(values: readonly number[], unit: Unit, withP99 = false): string {
  const suffix = unit === '×' ? '' : ` ${unit}`;
  const [low, middle, high] = [0.25, 0.5, 0.75].map((share) => shown(percentile(values, share)));
  const p99 = withP99 ? `, p99 ${shown(percentile(values, 0.99))}` : '';
  return `${middle}${suffix} [${low} … ${high}]${p99} (n ${values.length})`;
}

/** Smallest and largest of some values. */
export function range(values: readonly number[]): string {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return low === high ? `${low}` : `${low} to ${high}`;
}

export function markdown(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = rows.map((row) => row.map((cell) => cell.replaceAll('|', '\\|')));
  return [header, header.map(() => '---'), ...cells].map((row) => `| ${row.join(' | ')} |`).join('\n');
}

const lines = (texts: readonly string[]) => [...new Set(texts.filter(Boolean))].join('<br>');

function floorCell({ bounds, unit }: Target, floors: Series | undefined): string {
  return lines(
    bounds.map((bound) => {
      const sum = floorOf(bound, floors);
      const text = floorText(bound);
      if (!text) return '';
      return sum === undefined ? text : `${text} = ${shown(sum)} ${unit}`;
    }),
  );
}

function targetCell({ bounds, unit }: Target, floors: Series | undefined): string {
  return lines(
    bounds.map((bound) => {
      const limit = bound.floors ? limitOf(bound, floors) : undefined;
      return boundText(bound, unit) + (limit === undefined ? '' : ` = ${shown(limit)}`);
    }),
  );
}

function figureCell({ bounds, unit }: Target, { values, floors, note }: Measured): string {
  const figure = spread(
    values,
    unit,
    bounds.some(({ share }) => share === 0.99),
  );
  const ratios = bounds.map((bound) => {
    const floor = bound.floors && floorOf(bound, floors);
    return floor ? `× ${(percentile(values, bound.share) / floor).toFixed(2)}` : '';
  });
  return lines([figure, ratios.filter(Boolean).join(', '), note ?? '']);
}

function peerCell({ peer: row, unit }: Target, peer: Peer): string {
  if (!row) return '–';
  if (typeof peer === 'string') return peer;
  const measured = peer[row];
  return measured ? lines([spread(measured.values, unit), measured.note]) : 'not measured';
}

/** Table of targets in their order. Rows without an entry in `measured` say that they were left out. */
export function targetTable(
  targets: readonly Target[],
  measured: readonly (Measured | Unmeasured)[],
  peer: Peer,
  short: boolean,
): string {
  const header = ['what', 'floors', 'target', 'figure: p50 [quartiles]', 'verdict', 'agent-sandbox'];
  const rows = targets.map((target) => {
    const found = measured.find(({ id }) => id === target.id) ?? {
      id: target.id,
      why: 'not measured: left out of this run',
    };
    const floors = 'why' in found ? undefined : found.floors;
    return [
      target.what,
      floorCell(target, floors),
      targetCell(target, floors),
      'why' in found ? '' : figureCell(target, found),
      verdict(target, found, short),
      peerCell(target, peer),
    ];
  });
  return markdown(header, rows);
}

/** Table of the floors, all samples of a floor together. */
export function floorTable(floors: Series): string {
  const rows = Object.entries(floors).map(([name, values]) => [name, spread(values, 'ms')]);
  return markdown(['floor', 'p50 [quartiles]'], rows);
}

/** Speed of the machine before a section of the run, milliseconds. */
export interface Speed {
  section: string;
  cpu: readonly number[];
  fsync: readonly number[];
}

/** Table of the machine's speed over the run. */
export function speedTable(speeds: readonly Speed[]): string {
  const first = speeds[0];
  const row = ({ section, cpu, fsync }: Speed) => [
    section,
    spread(cpu, 'ms'),
    spread(fsync, 'ms'),
    first ? `× ${(median(cpu) / median(first.cpu)).toFixed(2)}` : '',
  ];
  return markdown(['before', 'fixed CPU loop', 'write and fsync of 4 KiB', 'CPU beside the first'], speeds.map(row));
}
