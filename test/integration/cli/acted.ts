import type { ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Stored } from '../../../core/kube/types.ts';
import { type Session, sessions, type Turn, turns } from '../../../core/resources/kinds.ts';
import { installManifests } from '../../../local/manifests.ts';
import { type TestServer, testServer } from '../../support/api-server.ts';
import { eventually } from '../../support/eventually.ts';
import { Caller, type Ended } from './support.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const NAMESPACE = 'default';
const API_VERSION = 'berth.dev/v1alpha1';

export const condition = (type: string, status: 'True' | 'False', reason: string, message = `${reason}.`) => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: '2026-01-01T00:00:00Z',
});

/** A cluster in which the test acts as the controller, so that it decides when every answer comes. */
export class ActedCluster {
  readonly server: TestServer;
  readonly caller: Caller;
  readonly env: { KUBECONFIG: string };

  private constructor(server: TestServer) {
    this.server = server;
    this.caller = new Caller(ROOT);
    this.env = { KUBECONFIG: join(this.caller.root, 'kubeconfig') };
    writeFileSync(this.env.KUBECONFIG, JSON.stringify(server.kubeconfig('test-admin')));
  }

  static async start(): Promise<ActedCluster> {
    const server = await testServer();
    await installManifests(server.store, [join(ROOT, 'manifests'), join(ROOT, 'manifests', 'embedded')]);
    return new ActedCluster(server);
  }

  async close(): Promise<void> {
    await this.server.close();
    this.caller.remove();
  }

  /** Runs a command to its end. */
  berth(...args: string[]): Promise<Ended> {
    return this.caller.berth(args, { env: this.env });
  }

  /** Starts a command; `says` waits until its stdout and stderr together match. */
  start(...args: string[]): { child: ChildProcess; ended: Promise<Ended>; says(text: RegExp): Promise<unknown> } {
    const { child, ended } = this.caller.start(args, { env: this.env });
    let told = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (chunk: string) => {
        told += chunk;
      });
    }
    return { child, ended, says: (text) => eventually(() => text.test(told), { what: `the command says ${text}` }) };
  }

  session(name: string, spec: Partial<Session['spec']> = {}, labels: Record<string, string> = {}) {
    return this.server.store.create(sessions, {
      apiVersion: API_VERSION,
      kind: 'Session',
      metadata: { namespace: NAMESPACE, name, labels },
      spec: { agent: { command: ['true'] }, ...spec } as Session['spec'],
    });
  }

  turn(name: string, session: string, spec: Partial<Turn['spec']> = {}) {
    return this.server.store.create(turns, {
      apiVersion: API_VERSION,
      kind: 'Turn',
      metadata: { namespace: NAMESPACE, name },
      spec: { session, ...spec } as Turn['spec'],
    });
  }

  /** Writes a session's status. */
  say(name: string, status: Session['status']) {
    return this.server.store.patch(sessions, { namespace: NAMESPACE, name }, { status }, { subresource: 'status' });
  }

  /** Writes a turn's status. */
  end(name: string, status: Turn['status']) {
    return this.server.store.patch(turns, { namespace: NAMESPACE, name }, { status }, { subresource: 'status' });
  }

  /** Resolves with the turn once it is created. */
  given(name: string): Promise<Stored<Turn>> {
    return eventually(() => this.server.store.get(turns, { namespace: NAMESPACE, name }), {
      what: `turn ${name} is created`,
    });
  }

  remove(name: string) {
    return this.server.store.delete(sessions, { namespace: NAMESPACE, name });
  }
}
