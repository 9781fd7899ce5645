import { understand } from '../../../core/frames/messages.ts';
import { openState, stateKey } from '../../../core/frames/seal.ts';
import { leases, secrets } from '../../../core/kube/resources.ts';
import {
  blobs,
  type StoredSession,
  type StoredTurn,
  sessionclasses,
  sessions,
  turns,
} from '../../../core/resources/kinds.ts';
import { blobName, parseStoreKey } from '../../../core/resources/names.ts';
import type { StateRef } from '../../../core/resources/schema.ts';
import type { Change } from '../../../local/apiserver/store/versioned.ts';
import { type SimServer, storageOf } from '../api/server.ts';
import type { Run } from '../cluster/agent.ts';
import type { Kubelets } from '../cluster/kubelets.ts';
import type { ControllerCall, Observer } from '../observer.ts';
import { Requests } from './requests.ts';
import { isLater, UncopiedStates } from './states.ts';
import { decoded } from './stored.ts';

export const LEASES = storageOf(leases);
export const CLASSES = storageOf(sessionclasses);
export const SESSIONS = storageOf(sessions);
export const TURNS = storageOf(turns);
export const BLOBS = storageOf(blobs);

export function ownerOf(turn: StoredTurn): string | undefined {
  return turn.metadata.ownerReferences?.find(({ kind }) => kind === 'Session')?.uid;
}

/** Location of the controllers' keys, and the ceiling of their store. */
interface Where {
  namespace: string;
  keys: string;
  storeCeilingBytes: number;
}

/** Ceiling from which a store is never full. */
const ROOM_BYTES = 1_000_000;

/** Duration after which a controller may give up a call of the store. */
const SLOW_MS = 2000;

const pluralOf = (storage: string): string => storage.split('.')[0] as string;

/** Events that have really happened, for invariants to compare with what is claimed. */
export class Facts {
  readonly server: SimServer;
  readonly kubelets: Kubelets;
  readonly where: Where;
  readonly #fail: (message: string) => void;
  /** Pod → the incarnation that its runner was bound for. */
  readonly bindings = new Map<string, number>();
  /** Turn uid → its runs, in order of their start. */
  readonly runs = new Map<string, Run[]>();
  /** Session uid → the latest state that any commit has shown. */
  readonly committed = new Map<string, StateRef>();
  /** Uid → the last version of every turn that was ever accepted. */
  readonly turns = new Map<string, StoredTurn>();
  /** Uid → the last version of every session that ever existed. */
  readonly sessions = new Map<string, StoredSession>();
  readonly requests = new Requests();
  /** Process of a controller → the protocol version that it speaks. */
  readonly protocols = new Map<string, number>();
  /** Controller process that was started last. */
  #present = '';
  /** Sessions whose state could not be stored once when they were to be suspended, as namespace/name. */
  readonly #suspensionFailed = new Set<string>();
  /** Process of a controller and uid of a pod that it deletes → the reason that it has logged last. */
  readonly #givenUp = new Map<string, string>();
  /** Session uid → the restart that was asked for when its present pod was named. */
  readonly #restarts = new Map<string, string | undefined>();
  /** Plural → the times at which the versions of its objects were written. */
  readonly #changes = new Map<string, { version: number; at: number }[]>();
  readonly #uncopied = new UncopiedStates();
  /** Time of the store's last failure, virtual milliseconds. */
  #storeFailedAt = -1;
  /** Call of the store that is under way → when it was sent, virtual milliseconds. */
  readonly #storing = new Map<ControllerCall, number>();
  #called: { call: ControllerCall; at: number } | undefined;

  constructor(server: SimServer, kubelets: Kubelets, where: Where, fail: (message: string) => void) {
    this.server = server;
    this.kubelets = kubelets;
    this.where = where;
    this.#fail = fail;
  }

  fail(invariant: string, message: string): void {
    this.#fail(`${invariant}: ${message}`);
  }

  sent(call: ControllerCall): void {
    if (call.resource === 'blobs') this.#storing.set(call, this.kubelets.now);
    if (call.verb !== 'replace' || call.resource !== 'sessions') return;
    this.#uncopied.writes(call, call.object?.metadata.uid ?? '');
  }

  answered(call: ControllerCall, error: Error | undefined): void {
    // The tries of a call are one: it may succeed late.
    const wasSlow = this.kubelets.now - (this.#storing.get(call) ?? this.kubelets.now) > SLOW_MS;
    this.#storing.delete(call);
    if (wasSlow || (error && call.resource === 'blobs')) this.#storeFailedAt = this.kubelets.now;
    if (!error) this.#uncopied.answered(call);
  }

  called(call: ControllerCall): void {
    this.#called = { call, at: this.kubelets.now };
  }

  /** Returns the controller's call that has made the change; undefined when no controller made it. */
  callBehind({ storage, object }: Change): ControllerCall | undefined {
    const { call, at } = this.#called ?? {};
    const { name, namespace } = object.metadata;
    const isIt = at === this.kubelets.now && call?.name === name && call.namespace === namespace;
    return isIt && pluralOf(storage) === call.resource ? call : undefined;
  }

  /**
   * Returns the virtual time up to which the controller knew all changes of these kinds, as of the call or `agoMs`
   * before.
   */
  knewUntil(call: ControllerCall, plurals: readonly string[], agoMs = 0): number {
    const missed = plurals.map((plural) => {
      const knew = call.knew(plural, agoMs);
      return this.#changes.get(plural)?.find(({ version }) => version > knew)?.at ?? Number.POSITIVE_INFINITY;
    });
    return Math.min(call.sentAt(agoMs), ...missed);
  }

  /** Returns when this version of a session was written, virtual milliseconds. */
  sessionCameAt(version: number): number {
    return this.#changes.get(pluralOf(SESSIONS))?.find((change) => change.version === version)?.at ?? 0;
  }

  committedBy(change: Change): void {
    const { storage, type, object, previous, version } = change;
    const call = this.callBehind(change);
    const plural = pluralOf(storage);
    const changes = this.#changes.get(plural) ?? [];
    this.#changes.set(plural, changes);
    changes.push({ version, at: this.kubelets.now });
    if (storage === TURNS) {
      const turn = object as unknown as StoredTurn;
      this.turns.set(turn.metadata.uid, turn);
      const state = turn.status?.state;
      const owner = ownerOf(turn);
      this.#note(owner, state);
      if (owner) this.requests.turn(turn, owner);
      const was = (previous as unknown as StoredTurn | undefined)?.status?.state;
      if (type === 'DELETED') this.#uncopied.deleted(turn, version);
      else if (owner && state && (!was || isLater(state, was)))
        this.#uncopied.committed(turn, owner, { state, version, call });
    }
    if (storage === LEASES && call) this.#uncopied.leads(call.process);
    if (storage === SESSIONS) {
      const session = object as unknown as StoredSession;
      this.sessions.set(session.metadata.uid, session);
      this.requests.session(session);
      const { podName } = (previous as unknown as StoredSession | undefined)?.status ?? {};
      if (session.status?.podName !== podName) this.#restarts.set(session.metadata.uid, session.spec.restartRequest);
      if (type !== 'DELETED') this.#note(session.metadata.uid, session.status?.state);
      this.#uncopied.copied(session);
    }
  }

  controllerStarted(process: string, protocol: number): void {
    this.protocols.set(process, protocol);
    this.#present = process;
  }

  gaveUp({ process, podUID, why }: Parameters<Observer['gaveUp']>[0]): void {
    this.#givenUp.set(`${process} ${podUID}`, why);
  }

  /** Returns why the process deletes the pod, as it has said last. */
  whyGivenUp(process: string, podUID: string): string | undefined {
    return this.#givenUp.get(`${process} ${podUID}`);
  }

  suspensionFailed(session: string): void {
    this.#suspensionFailed.add(session);
  }

  /**
   * Reports whether a runner that its controller does not understand may go on in the session: one that keeps no state, or
   * whose state could not be stored when it was to be suspended.
   */
  mayKeepOutdated({ metadata: { namespace, name }, spec }: StoredSession): boolean {
    return spec.persistence?.state === false || this.#suspensionFailed.has(`${namespace}/${name}`);
  }

  /** Reports whether the session has a pod whose runner the controller that was started last is to replace. */
  isToReplaceRunner(session: StoredSession): boolean {
    const { podName, podUID = '' } = session.status ?? {};
    return Boolean(podName) && !this.mayKeepOutdated(session) && this.isOutdated(this.#present, podUID);
  }

  /** Reports whether the controller does not understand the pod's runner. */
  isOutdated(process: string, podUID: string): boolean {
    const [mine, theirs] = [this.protocols.get(process), this.kubelets.container(podUID)?.protocol];
    return mine !== undefined && theirs !== undefined && !understand(mine, theirs);
  }

  bound(incarnation: number, podUID: string): void {
    this.bindings.set(podUID, incarnation);
  }

  started(run: Run): void {
    this.runs.set(run.turn, [...(this.runs.get(run.turn) ?? []), run]);
  }

  session(uid: string): StoredSession | undefined {
    return this.server.list(sessions).find(({ metadata }) => metadata.uid === uid);
  }

  /** Reports whether the session has a pod from before the restart that was asked for last. */
  isToRestart({ metadata, spec, status }: StoredSession): boolean {
    const { restartRequest } = spec;
    return (
      Boolean(status?.podName) && restartRequest !== undefined && restartRequest !== this.#restarts.get(metadata.uid)
    );
  }

  /** Reports whether the turn is not deleted. */
  isStored({ metadata: { uid, name, namespace } }: StoredTurn): boolean {
    return this.server.get(turns, namespace, name)?.metadata.uid === uid;
  }

  turnsOf(sessionUID: string): StoredTurn[] {
    return this.server.list(turns).filter((turn) => ownerOf(turn) === sessionUID);
  }

  /** Reports whether the store is never full. */
  get hasRoom(): boolean {
    return this.where.storeCeilingBytes >= ROOM_BYTES;
  }

  /**
   * Reports whether the controller of the last call may have been unable to store large data since that virtual time,
   * because the store was full, failed or answered late.
   */
  couldNotStore(since: number): boolean {
    const isSlow = [...this.#storing].some(
      ([{ process }, sentAt]) => process === this.#called?.call.process && this.kubelets.now - sentAt > SLOW_MS,
    );
    return !this.hasRoom || this.#storeFailedAt >= since || isSlow;
  }

  /** Returns the bytes that are stored under a store key now, or the problem why they cannot be read. */
  stored(namespace: string, ref: string): { data: Buffer } | { problem: string } {
    const key = parseStoreKey(ref);
    if (!key) return { problem: `"${ref}" is no store key` };
    return decoded((part) => this.server.get(blobs, namespace, blobName(key, part)));
  }

  /** Returns the archive of a state reference, opened with the installation's key, or the problem. */
  archive(namespace: string, sessionUID: string, state: StateRef): { data: Buffer } | { problem: string } {
    const secret = this.server.get(secrets, this.where.namespace, this.where.keys);
    const master = secret?.data?.[state.keyId];
    if (!master) return { problem: `there is no master key ${state.keyId}` };
    const sealed =
      state.inline !== undefined
        ? { data: Buffer.from(state.inline, 'base64') }
        : this.stored(namespace, state.ref ?? '');
    if ('problem' in sealed) return sealed;
    const key = stateKey(Buffer.from(master, 'base64'), sessionUID);
    const data = openState(key, sealed.data, { session: sessionUID, keyId: state.keyId });
    return data ? { data } : { problem: 'it does not open with the session key' };
  }

  /** Returns the last committed state, without states that were deleted with their turn before the leader knew them. */
  left(sessionUID: string): StateRef | undefined {
    const written = this.sessions.get(sessionUID)?.status?.state;
    return this.#uncopied.of(sessionUID).reduce((last, state) => (isLater(state, last) ? state : last), written);
  }

  #note(sessionUID: string | undefined, state: StateRef | undefined): void {
    if (sessionUID && state && isLater(state, this.committed.get(sessionUID))) this.committed.set(sessionUID, state);
  }
}
