import type { Duplex } from 'node:stream';
import type { Placed } from '../../core/follow/session-events.ts';
import type { CallOptions, KubeObject } from '../../core/kube/types.ts';
import type { Approval, StoredSession, StoredTurn } from '../../core/resources/kinds.ts';
import type { Artifact } from '../../core/resources/turn.ts';
import type { Cli } from '../cli.ts';
import type { DryRun, NewObjects, NewSession, NewTurn } from '../create/new-objects.ts';
import type { Inside } from './inside.ts';
import type { Place, ReadTableOptions, Table } from './listed.ts';

/** A decision on a request, as its caller gives it. */
export type Decision = Pick<Approval['spec'], 'decision'> & { response?: unknown; note?: string | undefined };

/** Versions in the cluster. */
export interface ServerVersion {
  /** Berth’s HTTP API, where that is asked. */
  api?: string;
  kubernetes?: string;
  /** Installations of the chart, or the embedded cluster; absent where the caller may not see them. */
  installations?: Installation[];
}

export interface Installation {
  /** Deployment of the controller as namespace/name; absent on the embedded cluster. */
  controller?: string;
  version: string;
  chart?: string;
}

export interface TextRequest {
  /** Live, until the session is finished or deleted. */
  follow: boolean;
  /** RFC 3339; earlier text of the present pod is left out. */
  sinceTime?: string;
  signal: AbortSignal;
}

/** Connections to TCP ports of a session's present pod. */
export interface Ports {
  /** Resolves when the port has answered. Each half ends by itself; destroying the connection before resets it. */
  connect(port: number): Promise<Duplex>;
  /** Ends all connections. */
  close(): void;
}

/**
 * Operations of commands on sessions and turns, besides the reading of objects. There is one implementation for the
 * Kubernetes API and one for Berth's HTTP API; both reject with the same types of errors.
 */
export interface Backend {
  /** Creates a session with its first turn, if one is given: both exist or neither. */
  createSession(
    session: NewSession,
    turn: NewTurn | undefined,
    cli: Cli,
  ): Promise<{ session: StoredSession; turn?: StoredTurn }>;
  /** Creates a turn that is deleted together with its session. */
  createTurn(turn: NewTurn, session: StoredSession, cli: Cli): Promise<StoredTurn>;
  /** Returns what would be created, in order, and creates nothing. */
  dryRun(objects: NewObjects, mode: DryRun, cli: Cli): Promise<KubeObject[]>;
  /**
   * Resolves with the session as it is after the request. `spec.suspendRequest` identifies the request without `hold`. This and the
   * methods below change the given object only: they reject with NotFound where another has taken its name.
   */
  suspend(session: StoredSession, hold: boolean, signal: AbortSignal): Promise<StoredSession>;
  restart(session: StoredSession, signal: AbortSignal): Promise<StoredSession>;
  resume(session: StoredSession, signal: AbortSignal): Promise<void>;
  deleteSession(session: StoredSession, options: CallOptions): Promise<void>;
  /** Has a turn end that has not ended yet. */
  cancelTurn(turn: StoredTurn, signal: AbortSignal): Promise<void>;
  /** Rejects with a CliError, AlreadyDecided or AlreadyExists when somebody has decided otherwise already. */
  decide(turn: StoredTurn, requestId: string, decision: Decision, signal: AbortSignal): Promise<void>;
  /** Reports whether the caller may decide, as far as that is known before. */
  mayDecide(signal: AbortSignal): Promise<boolean>;
  /** The turn's output; undefined when it has none. */
  output(turn: StoredTurn, signal: AbortSignal): Promise<unknown>;
  /** The kept text of an ended turn's agent; empty when there is none. */
  log(turn: StoredTurn, signal: AbortSignal): Promise<string>;
  /** The content of an artifact, checked against its digest. */
  artifact(turn: StoredTurn, artifact: Artifact, signal: AbortSignal): Promise<Buffer>;
  /** The readable text of the session's pod so far, or of all pods live. */
  text(session: StoredSession, request: TextRequest): AsyncIterable<string>;
  /** Everything that happens to a session until it is deleted. */
  sessionEvents(
    session: StoredSession,
    options: { logs: boolean; signal: AbortSignal },
    cli: Cli,
  ): AsyncIterable<Placed>;
  /** Everything that happens to the sessions and turns of the namespace. */
  namespaceEvents(signal: AbortSignal, cli: Cli): AsyncIterable<Placed>;
  /** Pod of the build of an Environment and the lines that it has printed so far, where they can be read. */
  buildLines(environment: string, signal: AbortSignal): Promise<{ pod?: string; lines: string[] }>;
  /** The inside of the session's present pod, until the signal aborts. Rejects where it has none. */
  inside(session: StoredSession, signal: AbortSignal): Promise<Inside>;
  /** Ports of the session's pod, until the signal aborts. */
  ports(session: StoredSession, signal: AbortSignal): Promise<Ports>;
  /** Versions of the server and the cluster, as far as the caller may know them. */
  versions(signal: AbortSignal): Promise<ServerVersion>;
  /** A table with the columns that kubectl shows. */
  table(place: Place, options: ReadTableOptions): Promise<Table>;
}
