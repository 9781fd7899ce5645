import * as z from 'zod';
import { anySignal } from '../core/abort.ts';
import { randomSuffix } from '../core/generated-name.ts';
import { KubeClient } from '../core/kube/client.ts';
import { loadConnection } from '../core/kube/config.ts';
import { ApiError, isNotFound } from '../core/kube/errors.ts';
import { follow } from '../core/kube/follow.ts';
import { parseConfig } from '../core/program/config.ts';
import { programLog } from '../core/program/log.ts';
import { VERSION } from '../core/program/version.ts';
import { formatDuration, parseDuration } from '../core/resources/duration.ts';
import { type Session, type StoredSession, sessions } from '../core/resources/kinds.ts';
import { duration } from '../core/resources/schema.ts';
import { systemClock, systemRandom } from '../core/system.ts';

/** Environment of `controller check`, which `helm test` runs. */
const checkConfig = z.object({
  /** Namespace in which the session runs. */
  BERTH_CHECK_NAMESPACE: z.string().min(1),
  /** SessionClass of the session, which lets it set its agent. */
  BERTH_CHECK_CLASS: z.string().min(1),
  /** Time from the creation of the session until it must have its result. */
  BERTH_CHECK_TIMEOUT: duration()
    .default('2m')
    .transform(parseDuration)
    .refine((ms) => ms >= 1000, 'must be at least 1s'),
  /** What to look at where nobody has taken the session, for the message. */
  BERTH_CHECK_CONTROLLER: z.string().default('the controller'),
});

/** Time for the removal of the session at the end, milliseconds. */
const REMOVAL_MS = 10_000;

const WORD = 'berth';
const EXPECTED = 'BERTH';

/**
 * Runs a session of one turn, shows its result and deletes it. Resolves with the exit code: 0 where the result is as expected within the
 * time; 1 with the reason on stderr otherwise, also after SIGTERM.
 */
export async function check(): Promise<number> {
  const config = parseConfig(checkConfig, process.env);
  const { BERTH_CHECK_NAMESPACE: namespace, BERTH_CHECK_TIMEOUT: timeoutMs } = config;
  const api = new KubeClient({
    connection: await loadConnection(),
    clock: systemClock,
    random: systemRandom,
    log: programLog(2, 'error'),
    userAgent: `berth-check/${VERSION}`,
  });
  const stopped = new AbortController();
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, () => stopped.abort(new Error(`got ${name}`)));
  let signal = stopped.signal;
  const name = `check-${randomSuffix(systemRandom, 8)}`;
  const where = `Session ${namespace}/${name}`;
  const startedAt = systemClock.monotonic();
  let last: StoredSession | undefined;
  let problem: string | undefined;
  let mayExist = true;
  try {
    last = await api.create(sessions, sessionOf(namespace, name, config.BERTH_CHECK_CLASS), { signal });
    signal = anySignal(stopped.signal, AbortSignal.timeout(timeoutMs));
    for await (last of follow(api, sessions, { namespace, name }, { clock: systemClock, signal })) {
      if (!last) problem = 'somebody deleted it';
      else if (last.status?.phase === 'Finished') problem = wrongEnd(last);
      else continue;
      break;
    }
  } catch (error) {
    // A request that was refused has made nothing; one without an answer may have.
    mayExist = last !== undefined || !(error instanceof ApiError && error.code < 500);
    const why = signal.aborted && !stopped.signal.aborted ? 'is not finished' : String((error as Error).message);
    problem = last && signal.aborted ? `${why}: ${stateOf(last, config.BERTH_CHECK_CONTROLLER)}` : why;
  }
  const took = formatDuration(systemClock.monotonic() - startedAt);
  if (problem === undefined) console.log(`${where} has answered ${EXPECTED} after ${took}.`);
  else console.error(`${where}, after ${took}: ${problem}`);
  if (mayExist) await remove(api, namespace, name);
  await api.close();
  return problem === undefined ? 0 : 1;
}

async function remove(api: KubeClient, namespace: string, name: string): Promise<void> {
  await api
    .delete(sessions, { namespace, name }, { signal: AbortSignal.timeout(REMOVAL_MS) })
    .catch((error: unknown) => {
      if (isNotFound(error)) return;
      console.error(`Session ${namespace}/${name} could not be deleted, delete it: ${(error as Error).message}`);
    });
}

function sessionOf(namespace: string, name: string, ofClass: string): Session {
  return {
    apiVersion: 'berth.dev/v1alpha1',
    kind: 'Session',
    metadata: { name, namespace },
    spec: {
      class: ofClass,
      turns: 'One',
      input: WORD,
      agent: { command: ['sh', '-c', 'tr a-z A-Z'], input: 'Text', result: 'Text' },
    },
  } as Session;
}

/** What is wrong with a finished session; undefined: nothing. */
function wrongEnd(session: StoredSession): string | undefined {
  const { phase, code, output } = session.status?.lastTurn ?? {};
  if (phase !== 'Succeeded') return `its turn ended as ${code ?? phase ?? 'none'}: ${stateOf(session, '')}`;
  if (String(output).trim() !== EXPECTED) return `its result is ${JSON.stringify(output)}, it should be ${EXPECTED}`;
  return undefined;
}

/** Where the session stands, by its phase and the conditions that do not hold. */
function stateOf({ status }: StoredSession, controller: string): string {
  if (!status?.phase) return `nobody has taken it. See that ${controller} has a pod that is ready.`;
  const open = (status.conditions ?? []).filter(({ status }) => status !== 'True');
  return [status.phase, ...open.map(({ type, reason, message }) => `${type}: ${reason}, ${message}`)].join('; ');
}
