import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { buffer, text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { type Session, sessions } from '../../../core/resources/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { noHelper } from '../../support/helper-run.ts';
import { pythonAgent } from '../../support/installation.ts';
import { skipIf } from '../../support/requires.ts';
import { ApiCluster } from '../api/support.ts';
import { Caller, type Ended } from './support.ts';

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

/** A call of port-forward that is under way. */
interface Forwarding {
  /** Ports of this machine, in the order of their lines. */
  ports: number[];
  stdout(): string;
  stderr(): string;
  interrupt(): void;
  ended: Promise<Ended>;
}

describe('berth port-forward', skipIf(noHelper), () => {
  let api: ApiCluster;
  let caller: Caller;
  const flags: Record<'kubeconfig' | 'server', string[]> = { kubeconfig: [], server: [] };
  const servers: { server: Server; sockets: Socket[] }[] = [];

  beforeAll(async () => {
    api = await ApiCluster.start();
    api.cluster.startController();
    caller = new Caller(process.cwd());
    const rights = [
      { verbs: ['*'], resources: ['sessions', 'turns'] },
      { verbs: ['create'], resources: ['sessions/ports'] },
    ];
    const { token } = await api.user(rights);
    const tokenFile = join(caller.root, 'token');
    writeFileSync(tokenFile, token);
    flags.kubeconfig = ['--kubeconfig', api.cluster.kubeconfig];
    flags.server = ['--server', api.url, '--token-file', tokenFile];
    await session('notes');
  });
  afterAll(async () => {
    for (const { server, sockets } of servers) {
      server.close();
      for (const socket of sockets) socket.destroy();
    }
    caller.remove();
    await api.close();
  });

  async function session(name: string, spec: Partial<Session['spec']> = {}): Promise<void> {
    await api.cluster.create(name, { agent: pythonAgent("answer('ready')"), ...spec });
    await api.cluster.turn(name, `${name}-1`, {});
    await api.cluster.ended(`${name}-1`);
  }

  /** Starts a server as an agent might: processes of the embedded cluster have the ports of this machine. */
  async function serve(onSocket: (socket: Socket) => void, port = 0): Promise<number> {
    const sockets: Socket[] = [];
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      sockets.push(socket);
      socket.on('error', () => {});
      onSocket(socket);
    });
    servers.push({ server, sockets });
    await once(server.listen(port, '127.0.0.1'), 'listening');
    return (server.address() as AddressInfo).port;
  }

  /** Starts port-forward; resolves once it listens on all. */
  async function forward(
    t: { onTestFinished: (fn: () => void) => void },
    way: keyof typeof flags,
    name: string,
    ...args: string[]
  ): Promise<Forwarding> {
    const { child, ended } = caller.start(['port-forward', name, ...args, ...flags[way]]);
    t.onTestFinished(() => void child.kill('SIGKILL'));
    const said = { stdout: '', stderr: '' };
    for (const stream of ['stdout', 'stderr'] as const) {
      child[stream]?.setEncoding('utf8').on('data', (chunk: string) => {
        said[stream] += chunk;
      });
    }
    const count = args.filter((arg) => /^[\d:]+$/.test(arg)).length;
    const ports = await eventually(
      () => {
        assert.equal(child.exitCode, null, said.stderr);
        const found = [...said.stdout.matchAll(/^Forwarding from 127\.0\.0\.1:(\d+) -> \d+$/gm)];
        return found.length === count ? found.map(([, port]) => Number(port)) : undefined;
      },
      { what: 'it listens' },
    );
    const interrupt = () => void child.kill('SIGINT');
    return { ports, stdout: () => said.stdout, stderr: () => said.stderr, interrupt, ended };
  }

  /** Resolves with the code of the error with which the socket is closed. */
  const failure = (socket: Socket) =>
    new Promise<string | undefined>((resolve) => {
      socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code));
      socket.once('close', () => resolve(undefined));
    });
  const dial = (port: number, host = '127.0.0.1') => {
    const socket = connect({ port, host, allowHalfOpen: true });
    socket.on('error', () => {});
    return socket;
  };

  for (const way of ['kubeconfig', 'server'] as const) {
    describe(`by a ${way}`, () => {
      test('carries many connections at once, each half closed by itself, from IPv4 and IPv6, until Ctrl-C', async (t) => {
        const echo = await serve(async (socket) => {
          socket.write('hello ');
          socket.end(await buffer(socket));
        });
        const other = await serve((socket) => void socket.end('the other'));
        const { ports, stdout, stderr, interrupt, ended } = await forward(t, way, 'notes', `:${echo}`, `:${other}`);
        const [first = 0, second = 0] = ports;
        assert.match(stdout(), new RegExp(`^Forwarding from \\[::1\\]:${first} -> ${echo}$`, 'm'));
        const six = dial(second, '::1').end();
        assert.equal(await text(six), 'the other');
        await Promise.all(
          Array.from({ length: 20 }, async () => {
            const content = randomBytes(300_000);
            const socket = dial(first);
            socket.end(content);
            assert.equal(sha256(await buffer(socket)), sha256(Buffer.concat([Buffer.from('hello '), content])));
          }),
        );
        interrupt();
        assert.equal((await ended).code, 130);
        assert.equal(stderr(), '');
      });

      test('closes a connection to a port where nothing listens, says so once, and goes on', async (t) => {
        const { ports, stderr } = await forward(t, way, 'notes', ':1');
        const socket = dial(ports[0] as number);
        assert.equal(await failure(socket), 'ECONNRESET');
        assert.match(
          stderr(),
          /^\S+: a connection to port 1 has ended: [Pp]ort 1 of session notes cannot be reached: Connection refused\.?\n$/,
        );
      });

      test('ends with 255 and a message when the session is deleted, and its connections are reset', async (t) => {
        const name = `gone-${way}`;
        await session(name);
        const port = await serve(() => {});
        const { ports, ended } = await forward(t, way, name, `:${port}`);
        const socket = dial(ports[0] as number);
        const reset = failure(socket);
        await once(socket, 'connect');
        await api.cluster.client.delete(sessions, { namespace: 'default', name });
        const { code, stderr } = await ended;
        assert.equal(code, 255, stderr);
        assert.match(stderr, new RegExp(`its ports are reached no more: session ${name} (was deleted|has ended)`));
        assert.equal(await reset, 'ECONNRESET');
      });

      test('ends with 255 and a message when the session is suspended, and its connections are reset', async (t) => {
        const name = `asleep-${way}`;
        await session(name);
        const port = await serve(() => {});
        const { ports, ended } = await forward(t, way, name, `:${port}`);
        const socket = dial(ports[0] as number);
        const reset = failure(socket);
        await once(socket, 'connect');
        const suspended = await caller.berth(['suspend', name, ...flags[way]]);
        assert.equal(suspended.code, 0, suspended.stderr);
        const { code, stderr } = await ended;
        assert.equal(code, 255, stderr);
        assert.match(stderr, new RegExp(`^\\S+: its ports are reached no more: session ${name} was suspended$`, 'm'));
        assert.equal(await reset, 'ECONNRESET');
      });
    });
  }

  test('keeps a session from being idle as long as bytes move, and no longer', async (t) => {
    await session('moving', { timeouts: { idle: '3s' } });
    const port = await serve((socket) => void socket.pipe(socket));
    const { ports, ended } = await forward(t, 'kubeconfig', 'moving', `:${port}`);
    const socket = dial(ports[0] as number);
    let moved = 0;
    const failed = failure(socket).then((why) => assert.fail(`${why} after ${moved} bytes`));
    // An echo of each byte sends the next one, for three times as long as the session may be idle.
    const until = performance.now() + 9_000;
    const moving = new Promise<void>((resolve) => {
      socket.on('data', () => {
        moved += 1;
        if (performance.now() > until) resolve();
        else setTimeout(() => socket.write('x'), 50);
      });
    });
    socket.write('x');
    await Promise.race([moving, failed]);
    failed.catch(() => {});
    const { code, stderr } = await ended;
    assert.equal(code, 255, stderr);
    assert.match(stderr, /^\S+: its ports are reached no more: session moving was suspended$/m);
  });

  test('reaches a server that a command of the session started', async (t) => {
    const probe = await serve(() => {});
    const { server } = servers.pop() as { server: Server };
    server.close();
    await once(server, 'close');
    const words = ['--', 'python3', '-m', 'http.server', String(probe), '--bind', '127.0.0.1'];
    const { stdout: id } = await caller.berth(['exec', '--detach', 'notes', ...flags.kubeconfig, ...words]);
    const { ports } = await forward(t, 'kubeconfig', 'notes', `:${probe}`);
    await eventually(
      () =>
        fetch(`http://127.0.0.1:${ports[0]}/`).then(
          ({ ok }) => ok,
          () => false,
        ),
      { what: 'a page' },
    );
    await caller.berth(['exec', '--kill', id.trim(), 'notes', ...flags.kubeconfig]);
  });

  test('refuses what it cannot do before anything listens', async () => {
    const taken = await serve(() => {});
    const fails = async (...args: string[]) => {
      const { code, stdout, stderr } = await caller.berth(['port-forward', ...args, ...flags.kubeconfig]);
      assert.equal(stdout, '');
      return `${code} ${stderr}`;
    };
    const inUse = await fails('notes', `${taken}:3000`);
    assert.match(inUse, new RegExp(`^2 \\S+: port ${taken} of 127\\.0\\.0\\.1 is in use by another program`));
    assert.match(await fails('nobody', '3000'), /^2 .*there is no session "nobody"/);
    assert.match(await fails('notes', '3000:4000:5000'), /^2 [\s\S]*is no pair of ports/);
    assert.match(await fails('notes', '3000:'), /^2 [\s\S]*is no pair of ports/);
    assert.match(await fails('notes', 'http'), /^2 [\s\S]*from 1 to 65535/);
    assert.match(await fails('notes', '3000', '--address', 'here'), /^2 [\s\S]*neither an IP address nor localhost/);
    assert.match(
      await fails('notes', '3000', '--address', '192.0.2.1'),
      /^2 [\s\S]*192\.0\.2\.1 is no address of this/,
    );
    await api.cluster.create('asleep', { agent: pythonAgent("answer('ready')"), suspend: true });
    assert.match(await fails('asleep', '3000'), /^255 \S+: session asleep (is suspended|has no pod yet)/);
  });
});
