import { randomUUID } from 'node:crypto';
import { ContentDamaged } from '../../clients/typescript/src/errors.ts';
import type { Call } from '../../clients/typescript/src/retry.ts';
import { defined } from '../../core/defined.ts';
import { ifThere } from '../../core/kube/errors.ts';
import type { CallOptions } from '../../core/kube/types.ts';
import { type StoredSession, type StoredTurn, sessions, turns } from '../../core/resources/kinds.ts';
import { firstTurnName } from '../../core/resources/names.ts';
import { StoreCorruptError } from '../../core/store/store.ts';
import type { Cli } from '../cli.ts';
import type { Backend, TextRequest } from '../cluster/backend.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { replaced } from '../cluster/replaced.ts';
import { keptLog } from '../cluster/stored.ts';
import { asSent } from '../create/dry-run.ts';
import type { NewSession, NewTurn } from '../create/new-objects.ts';
import { refused } from '../errors.ts';
import { followObject } from '../follow/object.ts';
import { EXPLAIN_AFTER_MS, whyWaiting } from '../wait/waiting.ts';
import type { ServerClient, ServerRequest } from './client.ts';
import { ServerError, ServerUnreachable } from './errors.ts';
import type { ServerObjects } from './objects.ts';
import { tableOf } from './objects.ts';

/** Backend on the HTTP API. */
export function serverBackend(
  client: ServerClient,
  objects: ServerObjects,
  { namespace, outages }: Pick<Cluster, 'namespace' | 'outages'>,
  cli: Cli,
): Backend {
  const all = `/v1/namespaces/${encodeURIComponent(namespace)}`;
  const pathOf = (session: string) => `${all}/sessions/${encodeURIComponent(session)}`;
  const turnPath = ({ spec, metadata }: StoredTurn) =>
    `${pathOf(spec.session)}/turns/${encodeURIComponent(metadata.name)}`;
  /** Sends a request whose effect comes once, even where it is sent several times. */
  const once = (path: string, body: object, signal: AbortSignal) =>
    client.json('POST', path, { body, key: randomUUID(), signal });
  /**
   * Sends a change of this very session or turn. A server of an earlier release does not know the parameter, and goes by the
   * name.
   */
  const change = async (
    method: Call['method'],
    path: string,
    { kind, metadata: { name, uid } }: StoredSession | StoredTurn,
    request: ServerRequest,
  ): Promise<unknown> => {
    try {
      return await client.json(method, path, { ...request, query: { uid } });
    } catch (error) {
      if (error instanceof ServerError && error.reason === 'UIDMismatch') {
        throw replaced(name, kind === turns.kind ? 'turn' : 'session');
      }
      if (!isUnknownParameter(error, 'uid')) throw error;
      return client.json(method, path, request);
    }
  };
  const changeOnce = (of: StoredSession, what: string, body: object, signal: AbortSignal) =>
    change('POST', `${pathOf(of.metadata.name)}/${what}`, of, { body, key: randomUUID(), signal });
  const session = (shown: unknown): StoredSession => objects.object(sessions, shown);

  const createTurn = async (
    { name, metadata, spec }: NewTurn,
    of: StoredSession,
    signal: AbortSignal,
  ): Promise<StoredTurn> => {
    const { session: _, cancel: __, requester: ___, ...given } = spec as StoredTurn['spec'];
    const body = { metadata: { ...metadata, name }, spec: given };
    return objects.object(turns, await changeOnce(of, 'turns', body, signal));
  };

  /** Resolves with the turn of a session of one turn, once the controller has created it. */
  const firstTurn = async ({ metadata: { name } }: StoredSession, { clock, say, interrupted }: Cli) => {
    const ref = { namespace, name: firstTurnName(name) };
    objects.expectTurn(ref, name);
    const cancel = clock.setTimer(EXPLAIN_AFTER_MS, () => {
      objects
        .get(sessions, { namespace, name }, { signal: interrupted })
        .then((now) => say(`waiting: ${whyWaiting(now, cli.name)}`))
        .catch(() => undefined);
    });
    try {
      const followed = { api: objects, namespace, outages };
      for await (const turn of followObject(followed, turns, ref.name, { clock, signal: interrupted })) {
        if (turn) return turn;
      }
      throw new Error('following a turn ended without it');
    } finally {
      cancel();
    }
  };

  return {
    async createSession(wanted, turn, cli) {
      refuseAttachments(wanted);
      const { name, metadata } = wanted;
      const { requester: _, ...spec } = wanted.spec;
      const isOne = spec.turns === 'One' && turn !== undefined;
      const body = { metadata: { ...metadata, name }, spec: isOne ? withTurn(spec, turn, name) : spec };
      const created = session(await once(`${all}/sessions`, body, cli.interrupted));
      if (!turn) return { session: created };
      try {
        const made = isOne ? firstTurn(created, cli) : createTurn(turn, created, cli.interrupted);
        return { session: created, turn: await made };
      } catch (error) {
        await change('DELETE', pathOf(name), created, { deadlineMs: 5_000 }).catch(() => {
          cli.say(`session ${name} is left incomplete; remove it with: ${cli.name} delete ${name}`);
        });
        throw error;
      }
    },
    createTurn: (turn, session, cli) => createTurn(turn, session, cli.interrupted),
    async dryRun(objects, mode) {
      if (objects.session) refuseAttachments(objects.session);
      if (mode === 'client') return asSent(objects, namespace, async () => false);
      throw refused('--dry-run=server is not possible through the HTTP API; use --dry-run=client, or a kubeconfig');
    },
    suspend: async (of, hold, signal) => session(await changeOnce(of, 'suspend', { hold }, signal)),
    restart: async (of, signal) => session(await changeOnce(of, 'restart', {}, signal)),
    async resume(of, signal) {
      await change('POST', `${pathOf(of.metadata.name)}/resume`, of, { body: {}, isRepeatable: true, signal });
    },
    async deleteSession(of, options: CallOptions) {
      const { name, uid } = of.metadata;
      const now = await ifThere(objects.get(sessions, { namespace, name }, options));
      if (now && now.metadata.uid !== uid) throw replaced(name);
      await change('DELETE', pathOf(name), of, options);
    },
    async cancelTurn(turn, signal) {
      await change('POST', `${turnPath(turn)}/cancel`, turn, { body: {}, isRepeatable: true, signal });
    },
    async decide(turn, requestId, { decision, response, note }, signal) {
      const spec = { requestId, decision, ...defined({ response }), ...(note && { note }) };
      await once(`${turnPath(turn)}/approvals`, { spec }, signal);
    },
    // The HTTP API shows the rights of a caller only by refusing.
    mayDecide: async () => true,
    async output(turn, signal) {
      const { output, outputRef } = turn.status ?? {};
      if (outputRef === undefined) return output;
      return client.json('GET', `${turnPath(turn)}/output`, { signal });
    },
    async log(turn, signal) {
      const { log } = turn.status ?? {};
      if (!log) return '';
      const text = await ifThere(client.text(`${turnPath(turn)}/log`, { signal }));
      return text === undefined ? '' : keptLog(log, text);
    },
    async artifact(turn, { name, bytes, digest }, signal) {
      try {
        const { Artifact } = await import('../../clients/typescript/src/artifacts.ts');
        const facts = { name, bytes, digest };
        const content = await client.call((caller) => new Artifact(caller, turnPath(turn), facts).read({ signal }));
        return Buffer.from(content.buffer, content.byteOffset, content.byteLength);
      } catch (error) {
        if (!(error instanceof ContentDamaged)) throw error;
        throw new StoreCorruptError(`Artifact ${JSON.stringify(name)}`, 'its digest is not that of what was sent');
      }
    },
    text: (session, request) => textOf(client, objects, `${pathOf(session.metadata.name)}/logs`, session, request),
    sessionEvents: ({ metadata: { name, uid } }, { logs, signal }) =>
      client.events(`${pathOf(name)}/events`, {
        logs,
        signal,
        isLast: ({ type, data }) => type === 'deleted' && data.uid === uid,
      }),
    namespaceEvents: (signal) => client.events(`${all}/events`, { signal, isLast: () => false }),
    // Builds of Environments are not in the HTTP API; the session's condition says that one is under way.
    buildLines: async () => ({ lines: [] }),
    inside: async (session, signal) =>
      (await import('./inside.ts')).serverInside(client, pathOf(session.metadata.name), session, {
        clock: cli.clock,
        signal,
      }),
    ports: async ({ metadata: { name, uid } }, signal) =>
      (await import('./port-socket.ts')).serverPorts(client, `${pathOf(name)}/ports`, {
        uid,
        clock: cli.clock,
        signal,
      }),
    async versions(signal) {
      const document = (await client.json('GET', '/openapi.json', { signal })) as { info?: { version?: string } };
      return { api: document.info?.version ?? 'unknown' };
    },
    async table({ resource, scope }, options) {
      return tableOf(resource, await objects.list(resource, { ...scope, ...options }), cli.clock.now());
    },
  };
}

/** Refuses what belongs to a session and has no page in the HTTP API, before anything is created. */
function refuseAttachments({ archive, environment }: NewSession): void {
  if (archive) {
    throw refused(
      '--with is not possible through the HTTP API, which creates no ConfigMaps; have one created, and name it in spec.agent.files of a manifest',
    );
  }
  if (environment) {
    throw refused(
      '--requirements is not possible through the HTTP API, which creates no Environments; have one created, and name it with --environment',
    );
  }
}

/** Returns the spec of a session of one turn, which comes with the session. */
function withTurn(spec: NewSession['spec'], turn: NewTurn, session: string): NewSession['spec'] {
  const { input = null, timeout, retry } = turn.spec;
  if (retry !== undefined) {
    throw refused('--attempts of a run is not possible through the HTTP API; create a session, and give it to: turn');
  }
  if (turn.name !== firstTurnName(session) || turn.metadata) {
    throw refused(
      '-f: through the HTTP API the turn of a run has the name of its session and no labels; leave the Turn out',
    );
  }
  return { ...spec, input, ...(timeout === undefined ? {} : { timeouts: { ...spec.timeouts, turn: timeout } }) };
}

/** Yields the text of the session's pod, or of all its pods live. */
async function* textOf(
  client: ServerClient,
  objects: ServerObjects,
  path: string,
  { metadata: { namespace, name, uid } }: StoredSession,
  { follow: live, sinceTime, signal }: TextRequest,
): AsyncGenerator<string> {
  const query = { sinceTime, follow: live || undefined };
  const limit = live ? {} : { idleTimeoutMs: 30_000 };
  const answer = await ifThere(client.open(path, { query, signal, ...limit }));
  // A session without a pod has no text.
  if (!answer) return;
  const decoder = new TextDecoder();
  for await (const chunk of answer.body) yield decoder.decode(chunk, { stream: true });
  const rest = decoder.decode();
  if (rest) yield rest;
  if (!live) return;
  // A server that is being stopped ends the text, too.
  const now = await ifThere(objects.get(sessions, { namespace, name }, { signal }));
  if (now?.metadata.uid === uid && now.status?.phase !== 'Finished') {
    throw new ServerUnreachable(`it ended the log of session ${name}, which goes on; follow it anew`);
  }
}

const isUnknownParameter = (error: unknown, name: string) =>
  error instanceof ServerError &&
  error.reason === 'InvalidParameter' &&
  error.status.details?.causes?.some(({ field }) => field === name);
