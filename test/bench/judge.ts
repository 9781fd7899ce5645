/** Judgement of measured rows by their targets: pure functions. */
import { median, percentile } from './statistics.ts';
import { type Bound, boundText, type Target, type TargetId } from './targets.ts';

/** Samples below which a p99 is no figure. */
const MIN_FOR_P99 = 500;

export type Series = Readonly<Record<string, readonly number[]>>;

/** Samples of a row in its unit, and those of its floors. */
export interface Measured {
  id: TargetId;
  values: readonly number[];
  floors?: Series;
  /** Why a floor has no samples. */
  absent?: string;
  /** Conditions of the measurement that a reader has to know. */
  note?: string;
}

/** Row without samples. `why` begins with "not measured" or "failed". */
export interface Unmeasured {
  id: TargetId;
  why: string;
}

export interface Judgement {
  text: string;
  /** Undefined: no verdict. */
  met: boolean | undefined;
}

/** Sum of the floors' medians by their weights; undefined where a floor has no samples. */
export function floorOf(bound: Bound, floors: Series = {}): number | undefined {
  let sum = 0;
  for (const [name, weight] of Object.entries(bound.floors ?? {})) {
    const values = floors[name];
    if (!values?.length) return undefined;
    sum += weight * median(values);
  }
  return sum;
}

/** Limit that a bound sets in this run; undefined where a floor has no samples. */
export function limitOf(bound: Bound, floors?: Series): number | undefined {
  const floor = floorOf(bound, floors);
  return floor === undefined ? undefined : (bound.factor ?? 1) * floor + (bound.plus ?? 0);
}

/** Judges one bound. A short run gives no verdict on a p99, nor does one of fewer samples than `MIN_FOR_P99`. */
export function judgeBound(bound: Bound, { values, floors, absent }: Measured, short: boolean): Judgement {
  if (bound.share === 0.99 && (short || values.length < MIN_FOR_P99)) {
    return { text: `no verdict on p99 (n ${values.length}, ${MIN_FOR_P99} needed)`, met: undefined };
  }
  const limit = limitOf(bound, floors);
  if (limit === undefined) {
    const names = Object.keys(bound.floors ?? {}).filter((name) => !floors?.[name]?.length);
    const why = absent ? ` (${absent})` : '';
    return { text: `no verdict: ${names.join(', ')} not measured${why}`, met: undefined };
  }
  const value = percentile(values, bound.share);
  if (Number.isNaN(value)) return { text: 'no verdict: no samples', met: undefined };
  const met = bound.atLeast ? value >= limit : value <= limit;
  return { text: met ? 'met' : 'missed', met };
}

/** Verdict of a row: of every bound where they differ. */
export function verdict(target: Target, measured: Measured | Unmeasured, short: boolean): string {
  if ('why' in measured) return measured.why;
  const judged = target.bounds.map((bound) => ({ bound, ...judgeBound(bound, measured, short) }));
  const texts = new Set(judged.map(({ text }) => text));
  if (texts.size === 1) return judged[0]?.text ?? 'no verdict: no target';
  return judged
    .map(({ bound, text, met }) => (met === undefined ? text : `${text}: ${boundText(bound, target.unit)}`))
    .join('; ');
}
