/** Outputs and logs from the Turn itself or from the store. */
import type { StoredTurn } from '../../core/resources/kinds.ts';
import { MAX_ARTIFACT_BYTES, MAX_OUTPUT_BYTES } from '../../core/resources/limits.ts';
import { parseStoreKey } from '../../core/resources/names.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import { readStored } from '../../core/store/read.ts';
import { Problem } from '../problems/problems.ts';
import type { Call, Services } from '../route.ts';

type Reader = Pick<Call, 'memory' | 'signal'>;

/** Returns the whole output as JSON. Rejects with a Problem. */
export async function outputJson(turn: StoredTurn, reader: Reader, services: Services): Promise<Buffer> {
  const { name } = turn.metadata;
  const { phase, output, outputRef, outputBytes = MAX_OUTPUT_BYTES, error } = turn.status ?? {};
  if (output !== undefined) return Buffer.from(JSON.stringify(output));
  if (outputRef !== undefined) {
    return stored(turn, { kind: 'Output', ref: outputRef, bytes: outputBytes }, reader, services);
  }
  if (!isTerminal(phase)) throw notFinished(turn);
  const why = error ? `: ${error.code}: ${error.message}` : '.';
  throw new Problem('NoOutput', `Turn "${name}" ended as ${phase} without output${why}`);
}

/** Returns the kept text of the log in UTF-8. Rejects with a Problem. */
export async function logText(turn: StoredTurn, reader: Reader, services: Services): Promise<Buffer> {
  const { phase, log } = turn.status ?? {};
  if (log?.inline !== undefined) return Buffer.from(log.inline);
  if (log?.ref !== undefined) {
    return stored(turn, { kind: 'Log', ref: log.ref, bytes: log.bytes }, reader, services);
  }
  if (!isTerminal(phase)) throw notFinished(turn);
  if (!log?.truncated) return Buffer.alloc(0);
  throw new Problem('NoLog', `The log of turn "${turn.metadata.name}" was lost before it could be kept.`);
}

/** Bytes of the largest content that is stored for a turn. */
const MOST = MAX_ARTIFACT_BYTES;

/**
 * Reads stored content with this server's rights: whoever may read the turn may read what it returned, whatever its size. `bytes`: its
 * size as the turn has it.
 */
async function stored(
  turn: StoredTurn,
  { kind, ref, bytes }: { kind: 'Output' | 'Log'; ref: string; bytes: number },
  { memory, signal }: Reader,
  { api }: Pick<Services, 'api'>,
): Promise<Buffer> {
  const key = ownContent(turn, ref);
  const expected = Math.min(bytes, MOST);
  memory.hold(expected);
  const content = await readStored(api, { ...key, namespace: turn.metadata.namespace, kind }, signal, 0, MOST);
  // A turn may say less: the size of a log is that before its secrets were hidden.
  if (content.length > expected) memory.hold(content.length - expected);
  return content;
}

/**
 * Returns the key that a turn's reference to stored content names. Throws a Problem for content of another session: a turn that somebody
 * else has written must not show what its reader may not read.
 */
export function ownContent(turn: StoredTurn, ref: string): NonNullable<ReturnType<typeof parseStoreKey>> {
  const { name, ownerReferences = [] } = turn.metadata;
  const key = parseStoreKey(ref);
  if (!key) throw new Problem('StoredDataMissing', `Turn "${name}" refers to "${ref}", which is no key.`);
  if (ownerReferences.some(({ kind, uid }) => kind === 'Session' && uid === key.sessionUID)) return key;
  const text = `Turn "${name}" refers to "${ref}", which is not of its session: it is not shown. Only the controller writes this reference.`;
  throw new Problem('StoredDataMissing', text);
}

/** Problem with a turn whose results are asked for before its end. */
export function notFinished(turn: StoredTurn): Problem {
  const text = `Turn "${turn.metadata.name}" is ${turn.status?.phase ?? 'Queued'}. Wait for its end: GET the turn with ?wait=30s.`;
  return new Problem('TurnNotFinished', text);
}
