/** Outputs and logs from the Turn itself or from the store. */
import type { StoredTurn } from '../core/resources/kinds.ts';
import { parseStoreKey } from '../core/resources/names.ts';
import { isTerminal } from '../core/resources/turn-phases.ts';
import { readStored } from '../core/store/read.ts';
import { Problem } from './problems.ts';
import type { Call, Services } from './route.ts';

type Reader = Pick<Call, 'caller' | 'signal'>;

/** Returns the whole output as JSON text. Rejects with a Problem. */
export async function outputText(turn: StoredTurn, reader: Reader, services: Services): Promise<string> {
  const { name } = turn.metadata;
  const { phase, output, outputRef, error } = turn.status ?? {};
  if (output !== undefined) return JSON.stringify(output);
  if (outputRef !== undefined) return (await stored(turn, 'Output', outputRef, reader, services)).toString();
  if (!isTerminal(phase)) throw notFinished(turn);
  const why = error ? `: ${error.code}: ${error.message}` : '.';
  throw new Problem('NoOutput', `Turn "${name}" ended as ${phase} without output${why}`);
}

/** Returns the kept text of the log. Rejects with a Problem. */
export async function logText(turn: StoredTurn, reader: Reader, services: Services): Promise<string> {
  const { phase, log } = turn.status ?? {};
  if (log?.inline !== undefined) return log.inline;
  if (log?.ref !== undefined) return (await stored(turn, 'Log', log.ref, reader, services)).toString();
  if (!isTerminal(phase)) throw notFinished(turn);
  throw new Problem('NoLog', `Turn "${turn.metadata.name}" ended as ${phase} without a log.`);
}

/** Reads stored content with the caller's right to read Blobs, as kubectl would. */
async function stored(
  turn: StoredTurn,
  kind: 'Output' | 'Log',
  ref: string,
  { caller, signal }: Reader,
  { api, access }: Services,
): Promise<Buffer> {
  const namespace = turn.metadata.namespace;
  const key = parseStoreKey(ref);
  if (!key) throw new Problem('StoredDataMissing', `Turn "${turn.metadata.name}" refers to "${ref}", which is no key.`);
  await access.authorize(caller, { verb: 'get', resource: 'blobs', namespace });
  return readStored(api, { ...key, namespace, kind }, signal);
}

/** Problem with a turn whose results are asked for before its end. */
export function notFinished(turn: StoredTurn): Problem {
  const text = `Turn "${turn.metadata.name}" is ${turn.status?.phase ?? 'Queued'}. Wait for its end: GET the turn with ?wait=30s.`;
  return new Problem('TurnNotFinished', text);
}
