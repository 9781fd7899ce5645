import type { CommandListed, CommandStart } from '../../core/enter/hello.ts';
import type { StoredSession } from '../../core/resources/kinds.ts';
import type { Clock } from '../../core/runtime.ts';
import type { Inside } from '../cluster/inside.ts';
import type { ServerClient } from './client.ts';
import { commandSocket } from './command-socket.ts';
import { asRefusal, ServerError, ServerUnreachable } from './errors.ts';
import { sessionFiles } from './session-files.ts';

/**
 * The inside of a session's present pod, below `path` of a server. Requests name the pod by its incarnation, so that nothing is done in
 * another one. All but commands end with the signal.
 */
export function serverInside(
  client: ServerClient,
  path: string,
  { metadata, status }: StoredSession,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Inside {
  const session = metadata.name;
  const pod = { uid: metadata.uid, incarnation: status?.incarnation };
  const commands = `${path}/commands`;
  const begin = async (id: string, start: CommandStart, until: AbortSignal) => {
    const body = { ...start, id, stdin: start.stdin ?? false, detach: start.detach ?? false };
    try {
      await client.json('POST', commands, { body, query: pod, signal: until, retry: false });
    } catch (error) {
      // The server may have heard no answer itself.
      if (!(error instanceof ServerError && error.code >= 500)) throw error;
      throw new ServerUnreachable(error.message, { cause: error, sent: true });
    }
  };
  return {
    command: ({ id, start, from = 0, input = false }, until) =>
      asRefusal(async () => {
        if (start) await begin(id, start, until);
        const query = { ...pod, from, input };
        const at = `${commands}/${encodeURIComponent(id)}/attach`;
        return commandSocket(client, at, { query, session, clock, signal: until });
      }),
    commands: () =>
      asRefusal(async () => {
        const { items } = (await client.json('GET', commands, { query: pod, signal })) as { items: CommandListed[] };
        return items;
      }),
    signalCommand: (id, name, graceMs) =>
      asRefusal(async () => {
        const body = { signal: name, graceSeconds: graceMs / 1000 };
        await client.json('POST', `${commands}/${encodeURIComponent(id)}/signal`, { body, query: pod, signal });
      }),
    ...sessionFiles(client, `${path}/files`, { pod, signal }),
  };
}
