/** Ports of a pod that is this machine: the real helper and the runner's real listener. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer, type ListenOptions, type Server, type Socket } from 'node:net';
import { enterSession } from '../../core/enter/client.ts';
import { PortConnections } from '../../core/enter/ports.ts';
import type { Bind } from '../../core/frames/messages.ts';
import type { KubeApi, PodStream, StreamEnd } from '../../core/kube/types.ts';
import type { StoredSession } from '../../core/resources/kinds.ts';
import { systemClock } from '../../core/system.ts';
import { listenForHelpers } from '../../runner/enter/listen.ts';
import { Ports } from '../../runner/enter/ports.ts';
import type { Access } from '../../runner/session/session.ts';
import { HELPER } from './helper-run.ts';
import { VirtualClock } from './virtual-clock.ts';

const PIECE = 16_384;

export class PortedPod implements Pick<KubeApi, 'exec'> {
  readonly session = {
    metadata: { name: 'notes', namespace: 'ns', uid: 'u' },
    spec: {},
    status: { phase: 'Ready', podName: 'notes-1', incarnation: 2 },
  } as unknown as StoredSession;
  /** What the runner says to a hello. */
  readonly state = {
    access: 'Open' as Access,
    bind: { session: { name: 'notes', uid: 'u' }, incarnation: 2 } as Bind,
  };
  /** The clock of the runner. */
  readonly clock = new VirtualClock();
  readonly ports = new Ports(this.clock);
  readonly helpers: ChildProcess[] = [];
  readonly #podUID = randomUUID();
  readonly #abort = new AbortController();
  readonly #servers: { server: Server; sockets: Set<Socket> }[] = [];
  #runner: Server | undefined;

  static async start(): Promise<PortedPod> {
    const pod = new PortedPod();
    const refused = () => {
      throw new Error('only ports are served');
    };
    pod.#runner = await listenForHelpers({
      podUID: pod.#podUID,
      session: pod.state,
      doors: {
        command: refused,
        commands: refused,
        signal: refused,
        files: refused,
        ports: (visit) => pod.ports.serve(visit),
      },
      clock: pod.clock,
    });
    return pod;
  }

  async exec(...[, options]: Parameters<KubeApi['exec']>): Promise<PodStream> {
    const env = { BERTH_POD_UID: this.#podUID, BERTH_LOCAL_ROOT: '/x' };
    const child = spawn(HELPER, [], { env, stdio: ['pipe', 'pipe', 'inherit'] });
    this.helpers.push(child);
    child.stdin.on('error', () => {});
    child.stdout.on('data', (chunk: Buffer) => options.onStdout?.(chunk));
    const closed = new Promise<StreamEnd>((resolve) =>
      child.once('close', (exitCode) => resolve({ by: 'remote', exitCode: exitCode ?? 1 })),
    );
    const close = () => void child.stdin.destroy();
    options.signal?.addEventListener('abort', close);
    return {
      // In pieces, as the Kubernetes client writes.
      write: async (data) => {
        const bytes = Buffer.from(data as Buffer);
        for (let at = 0; at < bytes.length; at += PIECE) {
          const hasRoom = child.stdin.write(bytes.subarray(at, at + PIECE));
          if (!hasRoom) await Promise.race([once(child.stdin, 'drain'), closed]);
        }
      },
      closeStdin: close,
      pause: () => void child.stdout.pause(),
      resume: () => void child.stdout.resume(),
      close,
      closed,
    };
  }

  async open(): Promise<PortConnections> {
    const options = { clock: systemClock, signal: this.#abort.signal };
    const ports = new PortConnections(await enterSession(this, this.session, { want: 'ports' }, options), 'notes');
    const connect = ports.connect.bind(ports);
    // What is still open at the end of a test fails then.
    ports.connect = (port) => connect(port).on('error', () => {});
    return ports;
  }

  /** A server of the agent; resolves with its port. */
  async serve(
    onSocket: (socket: Socket) => void,
    { host = '127.0.0.1', port = 0 }: ListenOptions = {},
  ): Promise<number> {
    const sockets = new Set<Socket>();
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      sockets.add(socket);
      socket.on('error', () => {});
      onSocket(socket);
    });
    this.#servers.push({ server, sockets });
    server.listen(port, host);
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#abort.abort();
    for (const { server, sockets } of this.#servers) {
      server.close();
      for (const socket of sockets) socket.destroy();
    }
    for (const helper of this.helpers) {
      helper.kill('SIGKILL');
      if (helper.exitCode === null && helper.signalCode === null) await once(helper, 'exit');
    }
    this.#runner?.close();
  }
}

/** Sends what it gets, and ends when its client has. */
export const echo = (socket: Socket): void => void socket.pipe(socket);
