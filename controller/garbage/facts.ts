import { tooDeepAt } from '../../core/depth.ts';
import type { StoredTurn } from '../../core/resources/kinds.ts';
import { jsonBytes, MAX_INPUT_BYTES } from '../../core/resources/limits.ts';
import type { StateRef } from '../../core/resources/schema.ts';
import { isTerminal } from '../../core/resources/turn.ts';

/** What garbage collection has to know of a Turn; its bodies are not kept. */
export interface TurnFacts {
  name: string;
  uid: string;
  resourceVersion: string;
  /** 0: not in any order, or not yet. */
  index: number;
  ended: boolean;
  /** Milliseconds since the epoch; 0 before. */
  endedAt: number;
  /** Of JSON: spec and status. */
  bytes: number;
  /** The incarnation that has it, or had it last. */
  incarnation: number | undefined;
  /** When it was given to a runner, milliseconds since the epoch. */
  givenAt: number | undefined;
  state: Place | undefined;
  stateRef: string | undefined;
  /** Store keys of its output and log. */
  refs: string[];
}

/** A place in the order in which states move forward. */
export type Place = Pick<StateRef, 'incarnation' | 'seq'>;

export function turnFacts({ metadata, spec, status = {} }: StoredTurn): TurnFacts {
  const given = status.conditions?.find(({ type }) => type === 'Running')?.lastTransitionTime;
  return {
    name: metadata.name,
    uid: metadata.uid,
    resourceVersion: metadata.resourceVersion,
    index: status.index ?? 0,
    ended: isTerminal(status.phase),
    endedAt: Date.parse(status.finishedAt ?? '') || 0,
    bytes: sizeOf({ spec, status }),
    incarnation: status.incarnation,
    givenAt: given === undefined ? undefined : Date.parse(given),
    state: status.state,
    stateRef: status.state?.ref,
    refs: [status.outputRef, status.log?.ref].filter((ref) => ref !== undefined),
  };
}

/** A spec that is nested too deep to be measured counts as the largest input. */
function sizeOf({ spec, status }: Pick<StoredTurn, 'spec' | 'status'>): number {
  if (tooDeepAt(spec.input, 'spec.input') === undefined) return jsonBytes({ spec, status });
  return MAX_INPUT_BYTES + jsonBytes(status);
}

/** Whether `a` comes after `b`; everything comes after nothing. */
export function isLater(a: Place | undefined, b: Place | undefined): boolean {
  if (!a || !b) return a !== undefined;
  return a.incarnation !== b.incarnation ? a.incarnation > b.incarnation : a.seq > b.seq;
}
