import type { KubeObject, NamespacedObject, ObjectMeta, OwnerReference, Resource, Stored } from '../kube/types.ts';
import type { ApprovalSpec } from './approval.ts';
import type { BlobSpec } from './blob.ts';
import type { EnvironmentSpec, EnvironmentStatus } from './environment.ts';
import { API_GROUP, API_GROUP_VERSION, API_VERSION } from './names.ts';
import type { SessionSpec, SessionStatus } from './session.ts';
import type { SessionClassSpec } from './sessionclass.ts';
import type { SessionPoolSpec, SessionPoolStatus } from './sessionpool.ts';
import type { TurnSpec, TurnStatus } from './turn.ts';

export interface Session extends NamespacedObject {
  spec: SessionSpec;
  status?: SessionStatus;
}
export interface Turn extends NamespacedObject {
  spec: TurnSpec;
  status?: TurnStatus;
}
export interface Approval extends NamespacedObject {
  spec: ApprovalSpec;
}
export interface SessionClass extends KubeObject {
  spec: SessionClassSpec;
}
export interface Environment extends NamespacedObject {
  spec: EnvironmentSpec;
  status?: EnvironmentStatus;
}
export interface SessionPool extends NamespacedObject {
  spec: SessionPoolSpec;
  status?: SessionPoolStatus;
}
export interface Blob extends NamespacedObject {
  spec: BlobSpec;
}
export type StoredSession = Stored<Session>;
export type StoredTurn = Stored<Turn>;
export type StoredApproval = Stored<Approval>;
export type StoredSessionClass = Stored<SessionClass>;
export type StoredEnvironment = Stored<Environment>;
export type StoredSessionPool = Stored<SessionPool>;
export type StoredBlob = Stored<Blob>;

const resource = <T extends KubeObject>(plural: string, kind: string, namespaced: boolean): Resource<T> => ({
  group: API_GROUP,
  version: API_VERSION,
  plural,
  kind,
  namespaced,
  exactNumbers: true,
});

export const sessions = resource<Session>('sessions', 'Session', true);
export const turns = resource<Turn>('turns', 'Turn', true);
export const approvals = resource<Approval>('approvals', 'Approval', true);
export const sessionclasses = resource<SessionClass>('sessionclasses', 'SessionClass', false);
export const environments = resource<Environment>('environments', 'Environment', true);
export const sessionpools = resource<SessionPool>('sessionpools', 'SessionPool', true);
export const blobs = resource<Blob>('blobs', 'Blob', true);

/** Returns an owner reference to the session, or an object of another kind; deleting it deletes the owned object too. */
export function ownedBy(
  owner: { metadata: { name: string; uid: string } },
  kind: 'Session' | 'SessionPool' = 'Session',
): {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller: boolean;
} {
  return {
    apiVersion: API_GROUP_VERSION,
    kind,
    name: owner.metadata.name,
    uid: owner.metadata.uid,
    controller: true,
  };
}

/** Returns the owner reference to the Session, among those to other owners. */
export function sessionOwner({ ownerReferences }: Pick<ObjectMeta, 'ownerReferences'>): OwnerReference | undefined {
  return ownerReferences?.find(({ kind }) => kind === 'Session');
}

/** Returns the references with one more; at most one of them may be the controller. */
export function withOwner(present: readonly OwnerReference[] | undefined, owner: OwnerReference): OwnerReference[] {
  const others = (present ?? []).filter(({ uid }) => uid !== owner.uid);
  return [...others, others.some(({ controller }) => controller) ? { ...owner, controller: false } : owner];
}

/** Returns the owner reference to a Turn; see `ownedBy`. */
export function ownedByTurn(turn: { metadata: { name: string; uid: string } }): ReturnType<typeof ownedBy> {
  return { ...ownedBy(turn), kind: 'Turn' };
}
