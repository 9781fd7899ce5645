import { EnterError, enterSession, type FrameStream } from '../../core/enter/client.ts';
import type { Wish } from '../../core/enter/hello.ts';
import { type StoredSession, sessions } from '../../core/resources/kinds.ts';
import type { Cli } from '../cli.ts';
import type { KubeCluster } from '../cluster/cluster.ts';
import { followObject } from '../follow/object.ts';

/** The pod that a session had when a command line began to work inside it. */
export interface Entered {
  session: StoredSession;
  open(wish: Wish, signal: AbortSignal): Promise<FrameStream>;
  /** Rejects when the session has that pod no more. */
  watch(signal: AbortSignal): Promise<never>;
}

export function entered(session: StoredSession, cluster: KubeCluster, cli: Cli): Entered {
  const { name, uid } = session.metadata;
  const incarnation = session.status?.incarnation;
  return {
    session,
    open: (wish, signal) => enterSession(cluster.api, session, wish, { clock: cli.clock, signal }),
    async watch(signal) {
      for await (const now of followObject(cluster, sessions, name, { clock: cli.clock, signal })) {
        const phase = now?.status?.phase;
        if (now?.metadata.uid !== uid) throw lost(`session ${name} was deleted`);
        if (now.status?.incarnation !== incarnation) throw lost(`session ${name} has another pod by now`);
        if (phase === 'Suspended') {
          throw new EnterError({ code: 'Suspended', message: `session ${name} was suspended; its commands ended` });
        }
        if (phase === 'Finished' || phase === 'Terminating') throw lost(`session ${name} has ended (${phase})`);
      }
      throw lost(`session ${name} is watched no more`);
    },
  };
}

const lost = (message: string) => new EnterError({ code: 'CommandLost', message: `the command is lost: ${message}` });
