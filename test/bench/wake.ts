/** Suspended sessions with a state that a turn wakes onto the pod of a pool. */
import { sessions } from '../../core/resources/kinds.ts';
import { eventually } from '../support/eventually.ts';
import { AGENT, type Ground, newSession } from './ground.ts';
import { Pool } from './pool.ts';
import { Restoring, STATE } from './restore.ts';
import type { Outcome } from './run.ts';
import { SAMPLES } from './settings.ts';

const NAME = 'wake';

/** Makes the state in the first turn. Later turns find it. */
const KEEPER = {
  ...AGENT,
  command: [
    ...AGENT.command.slice(0, -1),
    `cd "$BERTH_STATE_DIR"
    if [ ! -e 0 ]; then for i in $(seq 0 ${STATE.files - 1}); do head -c ${STATE.bytesEach} /dev/urandom >$i; done; fi
    ${AGENT.command.at(-1)}`,
  ],
};

/** Wakes of one session, each onto a pod of the pool and beside the floors of a wake. */
export async function wakes(ground: Ground): Promise<Outcome> {
  const { floors } = ground;
  const { client, namespace } = ground.cluster;
  const session = await client.create(sessions, newSession(namespace, NAME, { agent: KEEPER }));
  await ground.turn(session);
  const made = await suspended(ground, 'made');
  if (made.bytes < STATE.files * STATE.bytesEach) throw new Error(`the state has ${made.bytes} bytes`);
  const pool = await Pool.open(ground);
  using restoring = await Restoring.start();
  const values: number[] = [];
  const beside: Record<'F-write' | 'F-attach' | 'F-spawn' | 'F-restore', number[]> = {
    ...{ 'F-write': [], 'F-attach': [], 'F-spawn': [], 'F-restore': [] },
  };
  for (let i = 0; i < SAMPLES; i++) {
    await pool.full();
    beside['F-write'].push(await floors.write());
    beside['F-attach'].push(await floors.attach());
    beside['F-spawn'].push(await ground.spawn());
    beside['F-restore'].push(await restoring.sample());
    const { ms, podUID } = await ground.turn(session);
    pool.claimed(NAME, podUID);
    values.push(ms);
    const { digest } = await suspended(ground, `${i}`);
    // An agent that found no state would have made another one.
    if (digest !== made.digest) throw new Error('the state was not restored');
  }
  await pool.delete();
  await ground.gone(NAME);
  const note = `pool of 1; ${STATE.files} files of random bytes; turn created → result`;
  return { rows: [{ id: 'wake', values, floors: beside, note }] };
}

/** Suspends the session, and resolves with its state once its pod is gone. */
async function suspended(ground: Ground, request: string): Promise<{ digest: string; bytes: number }> {
  const { client, namespace } = ground.cluster;
  const ref = { namespace, name: NAME };
  await client.patch(sessions, ref, { spec: { suspendRequest: request } });
  const state = await eventually(
    async () => {
      const { status } = await client.get(sessions, ref);
      return status?.phase === 'Suspended' && status.suspendHandled?.id === request ? status.state : undefined;
    },
    { what: 'the session is Suspended' },
  );
  await ground.podsGone(NAME);
  return state;
}
