import { enterSession } from '../../core/enter/client.ts';
import { listFolder, statFile, transfer, transferRest } from '../../core/enter/files.ts';
import type { CommandListed, FileEntry, Wish } from '../../core/enter/hello.ts';
import { deleteFile, uploadFile, uploadFolder } from '../../core/enter/uploads.ts';
import { TransportError } from '../../core/kube/errors.ts';
import type { StoredSession } from '../../core/resources/kinds.ts';
import type { Cli } from '../cli.ts';
import type { KubeCluster } from '../cluster/cluster.ts';
import type { Inside } from '../cluster/inside.ts';

/** The inside of the session's present pod, over `pods/exec`. All but commands end with the signal. */
export function podInside(
  session: StoredSession,
  { api }: Pick<KubeCluster, 'api'>,
  { clock }: Pick<Cli, 'clock'>,
  signal: AbortSignal,
): Inside {
  const enter = (wish: Wish, until: AbortSignal) => enterSession(api, session, wish, { clock, signal: until });
  const open = (wish: Wish) => enter(wish, signal);
  return {
    command: enter,
    async commands() {
      const pieces: Buffer[] = [];
      let isWhole = false;
      for await (const { kind, payload } of await open({ want: 'commands' })) {
        if (kind === 'data') pieces.push(payload);
        isWhole ||= kind === 'end';
      }
      if (!isWhole) throw new TransportError('the list of commands was cut');
      return JSON.parse(Buffer.concat(pieces).toString('utf8')) as CommandListed[];
    },
    async signalCommand(id, name, graceMs) {
      (await open({ want: 'signal', id, signal: name, graceMs })).close();
    },
    stat: ({ root, path }) => statFile(open, root, path),
    async list({ root, path }) {
      const found: FileEntry[] = [];
      for await (const entry of listFolder(open, root, path)) found.push(entry);
      return found;
    },
    read: ({ root, path }, rest) =>
      rest ? transferRest(open, { root, path }, rest) : transfer(open, { want: 'read', root, path }),
    archive: ({ root, path }) => transfer(open, { want: 'archive', root, path }),
    write: ({ root, path }, facts, content) => uploadFile(open, { root, path, ...facts }, content),
    fill: ({ root, path }, length, entries) => uploadFolder(open, { root, path, length }, entries),
    remove: ({ root, path }, recursive) => deleteFile(open, { root, path, recursive }),
  };
}
