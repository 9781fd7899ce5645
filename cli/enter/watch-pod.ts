import { EnterError } from '../../core/enter/client.ts';
import { type StoredSession, sessions } from '../../core/resources/kinds.ts';
import type { Cli } from '../cli.ts';
import { type Followed, followObject } from '../follow/object.ts';

/** Rejects when the session has the pod no more that it had when it was read. `lost`: begins the messages. */
export async function watchPod(
  session: StoredSession,
  cluster: Followed,
  { cli, signal, lost }: { cli: Pick<Cli, 'clock'>; signal: AbortSignal; lost: string },
): Promise<never> {
  const { name, uid } = session.metadata;
  const incarnation = session.status?.incarnation;
  const gone = (message: string) => new EnterError({ code: 'CommandLost', message: `${lost}: ${message}` });
  for await (const now of followObject(cluster, sessions, name, { clock: cli.clock, signal })) {
    const phase = now?.status?.phase;
    if (now?.metadata.uid !== uid) throw gone(`session ${name} was deleted`);
    if (now.status?.incarnation !== incarnation) throw gone(`session ${name} has another pod by now`);
    if (phase === 'Suspended') {
      throw new EnterError({ code: 'Suspended', message: `${lost}: session ${name} was suspended` });
    }
    if (phase === 'Finished' || phase === 'Terminating') throw gone(`session ${name} has ended (${phase})`);
  }
  throw gone(`session ${name} is watched no more`);
}
