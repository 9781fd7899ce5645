import { tooDeepAt } from '../../core/depth.ts';
import type { StoredTurn } from '../../core/resources/kinds.ts';
import { jsonBytes, MAX_INPUT_BYTES } from '../../core/resources/limits.ts';
import type { StateRef } from '../../core/resources/schema.ts';
import type { TurnStatus } from '../../core/resources/turn.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';

/** Whether a turn may need the state that it names. */
export interface StateUse {
  /** Index of the turn; 0 when it has none. */
  index: number;
  ended: boolean;
  stateRef: string | undefined;
}

/** Facts that garbage collection needs of a Turn, without its bodies. */
export interface TurnFacts extends StateUse {
  name: string;
  uid: string;
  resourceVersion: string;
  /** End of the turn, milliseconds since the epoch; 0 before. */
  endedAt: number;
  /** Bytes of the JSON of spec and status. */
  bytes: number;
  /** The incarnation that runs the turn, or ran it last. */
  incarnation: number | undefined;
  /** Delivery to a runner, milliseconds since the epoch. */
  givenAt: number | undefined;
  state: StatePosition | undefined;
  /** Store keys of the turn's output, log and artifacts. */
  refs: string[];
  /** Bytes of what these keys name. */
  stored: number;
}

/** Position of a state in the order of states. */
export type StatePosition = Pick<StateRef, 'incarnation' | 'seq'>;

export function turnFacts({ metadata, spec, status = {} }: StoredTurn): TurnFacts {
  const given = status.conditions?.find(({ type }) => type === 'Running')?.lastTransitionTime;
  return {
    name: metadata.name,
    uid: metadata.uid,
    resourceVersion: metadata.resourceVersion,
    ...stateUse(status),
    endedAt: Date.parse(status.finishedAt ?? '') || 0,
    bytes: sizeOf({ spec, status }),
    incarnation: status.incarnation,
    givenAt: given === undefined ? undefined : Date.parse(given),
    state: status.state,
    refs: [status.outputRef, status.log?.ref, ...(status.artifacts ?? []).map(({ ref }) => ref)].filter(
      (ref) => ref !== undefined,
    ),
    stored: storedBytes(status),
  };
}

function storedBytes({ outputRef, outputBytes = 0, log, artifacts = [] }: TurnStatus): number {
  const ofOutput = outputRef === undefined ? 0 : outputBytes;
  const ofLog = log?.ref === undefined ? 0 : log.bytes;
  return artifacts.reduce((sum, { bytes }) => sum + bytes, ofOutput + ofLog);
}

export function stateUse({ index = 0, phase, state }: TurnStatus): StateUse {
  return { index, ended: isTerminal(phase), stateRef: state?.ref };
}

/** Bytes of the JSON; a spec nested too deep to be measured counts as the largest input. */
function sizeOf({ spec, status }: Pick<StoredTurn, 'spec' | 'status'>): number {
  if (tooDeepAt(spec.input, 'spec.input') === undefined) return jsonBytes({ spec, status });
  return MAX_INPUT_BYTES + jsonBytes(status);
}

/** Reports whether `a` comes after `b`; any state comes after undefined. */
export function isLater(a: StatePosition | undefined, b: StatePosition | undefined): boolean {
  if (!a || !b) return a !== undefined;
  return a.incarnation !== b.incarnation ? a.incarnation > b.incarnation : a.seq > b.seq;
}
