import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import type { Hello } from '../../core/enter/hello.ts';
import type { Bind } from '../../core/frames/messages.ts';
import type { Clock } from '../../core/runtime.ts';
import type { Access } from '../session/session.ts';
import { Connection } from './connection.ts';
import { parseHello, problemOf } from './hello.ts';
import type { Visit } from './visit.ts';

/** Limit of the connections of helpers at a time. */
const MAX_CONNECTIONS = 64;
/** Time for a hello, milliseconds. */
const HELLO_MS = 10_000;
/** Pause after the first attempt to listen where the name is taken; it doubles up to the maximum. Milliseconds. */
const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 30_000;

/** Serves a visit, whose connection it ends or leaves to the client. */
export type Door = (visit: Visit) => void;

export interface Entrance {
  podUID: string;
  /** The session that the runner is bound to. */
  session: { readonly bind: Bind; readonly access: Access };
  /**
   * Returns the pid of a connected socket's peer in this PID namespace, 0 for a peer of another one. Absent on the embedded
   * cluster, where helpers cannot be told from the agent's processes.
   */
  peerPid?: ((fd: number) => number) | undefined;
  doors: Record<'command' | 'commands' | 'signal' | 'files' | 'ports', Door>;
  clock: Clock;
  /** Called once where another process has the name of the socket, which is tried again at a pace. */
  onTaken?: () => void;
}

/**
 * Listens for helpers on the abstract socket of this pod. Only what the kubelet starts in the container has a parent outside of it; a
 * connection of any other process is closed at once, so the agent's connections take nobody's place. Resolves when it listens, which may
 * be late: any process of the pod's network can take the name before, and keep it as long as it lives.
 */
export function listenForHelpers(entrance: Entrance): Promise<Server> {
  let open = 0;
  const server = createServer((socket) => {
    if (!isOfKubelet(socket, entrance.peerPid)) {
      socket.destroy();
      return;
    }
    open += 1;
    socket.once('close', () => {
      open -= 1;
    });
    receive(socket, open, entrance);
  });
  return listening(server, entrance);
}

async function listening(server: Server, { podUID, clock, onTaken }: Entrance): Promise<Server> {
  for (let pause = FIRST_PAUSE_MS, isFirst = true; ; pause = Math.min(2 * pause, MAX_PAUSE_MS), isFirst = false) {
    try {
      server.listen(`\0berth/${podUID}`);
      await once(server, 'listening');
      server.on('error', () => {});
      return server;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
      if (isFirst) onTaken?.();
      await new Promise<void>((resolve) => void clock.setTimer(pause, resolve));
    }
  }
}

function receive(socket: Socket, open: number, entrance: Entrance): void {
  const { session, doors, clock } = entrance;
  const cancel = clock.setTimer(HELLO_MS, () => socket.destroy());
  socket.once('close', cancel);
  const connection = new Connection(socket, clock, ({ kind, payload }) => {
    cancel();
    if (kind !== 'hello') {
      connection.refuse({ code: 'Invalid', message: 'the first frame is no hello' });
      return;
    }
    const hello = parseHello(payload);
    const problem = 'want' in hello ? problemOf(hello, session.bind, session.access) : hello;
    if (problem) connection.refuse(problem);
    else if (open > MAX_CONNECTIONS) {
      const message = `the session has ${MAX_CONNECTIONS} connections already; end one of them`;
      connection.refuse({ code: 'TooManyConnections', message });
    } else admit(connection, hello as Hello, doors);
  });
}

function admit(connection: Connection, hello: Hello, doors: Entrance['doors']): void {
  const { want } = hello;
  connection.hello = hello;
  if (want === 'command' || want === 'commands' || want === 'signal') {
    connection.watch();
    doors[want](connection);
  } else if (want === 'ports') {
    doors.ports(connection);
  } else {
    // The helper sends nothing more.
    connection.onFrame(() => {});
    doors.files(connection);
  }
}

/** Reports whether the peer is in this PID namespace and its parent outside of it. */
function isOfKubelet(socket: Socket, peerPid: Entrance['peerPid']): boolean {
  if (!peerPid) return true;
  const pid = peerPid(descriptorOf(socket));
  try {
    return pid > 0 && parentOf(pid) === 0;
  } catch {
    // It has ended.
    return false;
  }
}

/** Node tells the descriptor of a connection nowhere else. */
const descriptorOf = (socket: Socket): number =>
  (socket as unknown as { _handle?: { fd?: number } | null })._handle?.fd ?? -1;

/** The name of the program, between brackets, can hold any byte (proc_pid_stat(5)). */
function parentOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
}
