import type { Seen } from '../../controller/capacity/ledger.ts';
import type { CachedSession, CachedTurn } from '../../controller/observed/world.ts';
import type { StoredPod } from '../../core/kube/builtin.ts';
import type { StoredSessionClass } from '../../core/resources/kinds.ts';
import type { SessionClassSpec } from '../../core/resources/sessionclass.ts';
import { aClass, aPod, aSession } from './world.ts';

/** Content of caches for tests of code that counts by them: objects are added and removed by hand. */
export class SeenCluster implements Seen {
  readonly sessions = new Map<string, CachedSession>();
  readonly pods = new Map<string, StoredPod>();
  readonly classes = new Map<string, StoredSessionClass>([['default', aClass()]]);
  readonly turns: CachedTurn[] = [];
  readonly labels = new Map<string, Record<string, string>>();
  staleMs = 0;
  #uid = 0;

  session = (namespace: string, name: string) => this.sessions.get(`${namespace}/${name}`);
  pod = (namespace: string, name: string) => this.pods.get(`${namespace}/${name}`);
  class = (name: string) => this.classes.get(name);
  turnsNaming = (namespace: string, session: string) =>
    this.turns.filter(({ metadata, spec }) => metadata.namespace === namespace && spec.session === session);
  allSessions = () => [...this.sessions.values()];
  allPods = () => [...this.pods.values()];
  knowsAgentFiles = () => true;
  agentFiles = (): string | undefined => undefined;
  namespaceLabels = (name: string) => this.labels.get(name);
  readonly unread = new Map<string, string>();
  staleness = () => this.staleMs;
  closed = (name: string) => this.unread.get(name);

  setClass(name: string, spec: Partial<SessionClassSpec>): void {
    this.classes.set(name, aClass(spec));
  }

  /** Adds a session as it is cached, by the `namespace/name` of the session. */
  add(key: string, change: Parameters<typeof aSession>[0] = {}): CachedSession {
    const slash = key.indexOf('/');
    const known = this.sessions.get(key);
    const session = aSession(change);
    session.metadata.namespace = key.slice(0, slash);
    session.metadata.name = key.slice(slash + 1);
    session.metadata.uid = known?.metadata.uid ?? `u${this.#uid++}`;
    this.sessions.set(key, session);
    return session;
  }

  addPod(namespace: string, name: string, change: Parameters<typeof aPod>[0] & { class?: string } = {}): StoredPod {
    const pod = aPod({ ...change, name });
    pod.metadata.namespace = namespace;
    pod.metadata.labels = {
      'app.kubernetes.io/managed-by': 'berth',
      ...(change.class ? { 'berth.dev/class': change.class } : {}),
    };
    this.pods.set(`${namespace}/${name}`, pod);
    return pod;
  }
}
