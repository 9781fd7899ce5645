import { defined } from '../../core/defined.ts';
import type { Usage } from '../../core/frames/messages.ts';
import { clip, jsonBytes, MAX_ERROR_BYTES, MAX_METADATA_BYTES } from '../../core/resources/limits.ts';
import { type Reason, reasons } from '../../core/resources/reasons.ts';
import type { StateRef } from '../../core/resources/schema.ts';
import type { TurnStatus } from '../../core/resources/turn.ts';
import type { Delivery } from '../observed/link-view.ts';
import type { Problem } from '../observed/world.ts';
import type { Ending } from './turn-status.ts';

/** The parts of a delivery that are durable, and the problems with the others. */
export interface StoredDelivery {
  state?: StateRef;
  output?: unknown;
  outputRef?: string;
  outputBytes?: number;
  log?: NonNullable<TurnStatus['log']>;
  artifacts?: Pick<TurnStatus, 'artifacts' | 'artifactsLeftOut'>;
  problems: Problem[];
}

/** The end of a turn, from its runner's result and what could be stored of it. */
export function outcomeOf({ result: { message } }: Delivery, stored: StoredDelivery): Ending {
  const { startedAt, finishedAt, exitCode, turnCount, redactions, metadata, usage } = message;
  const problems = [...stored.problems];
  const metadataFits = metadata === undefined || jsonBytes(metadata) <= MAX_METADATA_BYTES;
  if (!metadataFits) {
    problems.push({ reason: 'ResultRejected', message: `The metadata is larger than ${MAX_METADATA_BYTES} bytes.` });
  }
  const fields: Partial<TurnStatus> = {
    startedAt,
    finishedAt,
    ...defined({ exitCode, turnCount, redactions }),
    ...(metadata === undefined || !metadataFits ? {} : { metadata }),
    ...(usage === undefined ? {} : { usage: used(usage) }),
    ...(stored.state ? { state: stored.state } : {}),
    ...defined({ output: stored.output, outputRef: stored.outputRef, outputBytes: stored.outputBytes }),
    ...stored.artifacts,
    ...(stored.log ? { log: stored.log } : {}),
  };
  const left = message.leftRunning.map(({ pid, command }) => `${pid} ${command}`).join(', ');
  const note = left ? ` Left running: ${left}.` : '';
  const say = (text: string) => clip(`${text}${note}`, MAX_ERROR_BYTES);

  const [problem] = problems;
  if (message.outcome === 'Succeeded' && !problem) {
    return { phase: 'Succeeded', reason: 'Succeeded', message: say(reasons.Succeeded), fields };
  }
  if (message.outcome === 'Succeeded' && problem) {
    return { phase: 'Failed', reason: problem.reason, message: say(problem.message), fields };
  }
  const reason = known(message.error?.code) ?? byOutcome[message.outcome as keyof typeof byOutcome] ?? 'AgentFailed';
  return {
    phase: message.outcome,
    reason,
    message: say(message.error?.message ?? reasons[reason]),
    fields,
  };
}

/** Converts a runner's usage to the units of a status. */
export function used({ wallMs, ...measured }: Usage): NonNullable<TurnStatus['usage']> {
  return { wall: wallMs / 1000, ...measured };
}

const byOutcome = { Failed: 'AgentFailed', Cancelled: 'Cancelled', TimedOut: 'TurnTimedOut' } as const;

/** Accepts an error code from a pod only if it is one of Berth's reasons. */
function known(code: string | undefined): Reason | undefined {
  return code !== undefined && Object.hasOwn(reasons, code) ? (code as Reason) : undefined;
}
