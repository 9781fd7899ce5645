import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { buffer, text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { WebSocket } from 'ws';
import { eventually } from '../../support/eventually.ts';
import { noHelper } from '../../support/helper-run.ts';
import { pythonAgent } from '../../support/installation.ts';
import { skipIf } from '../../support/requires.ts';
import { ApiCluster, EVERYTHING, KeptLog, type Rule } from './support.ts';

const SESSION = '/v1/namespaces/default/sessions/notes';
const CONNECT: Rule[] = [{ verbs: ['create'], resources: ['sessions/ports'] }];
const agent = pythonAgent("answer('ready')");
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

describe('ports of a session over HTTP', skipIf(noHelper), () => {
  let api: ApiCluster;
  let token: string;
  const servers: { server: Server; sockets: Socket[] }[] = [];
  const log = new KeptLog();
  beforeAll(async () => {
    api = await ApiCluster.start({}, undefined, log.logger);
    api.cluster.startController();
    ({ token } = await api.user(CONNECT));
    await api.cluster.create('notes', { agent });
    await api.cluster.turn('notes', 'notes-1', {});
    const turn = await api.cluster.ended('notes-1');
    assert.equal(turn.status?.phase, 'Succeeded', JSON.stringify(turn.status));
  });
  afterAll(async () => {
    for (const { server, sockets } of servers) {
      server.close();
      for (const socket of sockets) socket.destroy();
    }
    await api.close();
  });

  /** Starts a server as an agent might: processes of the embedded cluster have the ports of this machine. */
  async function serve(onSocket: (socket: Socket) => void): Promise<number> {
    const sockets: Socket[] = [];
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      sockets.push(socket);
      socket.on('error', () => {});
      onSocket(socket);
    });
    servers.push({ server, sockets });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return (server.address() as AddressInfo).port;
  }

  /** Opens the socket of a port; resolves with it, or with the refusal. */
  async function dial(t: { onTestFinished: (fn: () => void) => void }, port: number | string, own = token) {
    const url = `${api.url.replace('http', 'ws')}${SESSION}/ports/${port}/tcp`;
    const socket = new WebSocket(url, { headers: { authorization: `Bearer ${own}` } });
    t.onTestFinished(() => socket.terminate());
    socket.on('error', () => {});
    const got: Buffer[] = [];
    const ended = new Promise<Buffer>((resolve) =>
      socket.on('message', (data: Buffer, isBinary) => (isBinary ? got.push(data) : resolve(Buffer.concat(got)))),
    );
    const closed = new Promise<[number, string]>((resolve) =>
      socket.on('close', (code, reason) => resolve([code, String(reason)])),
    );
    const refusal = await Promise.race([
      once(socket, 'open').then(() => undefined),
      new Promise<string>((resolve) =>
        socket.on('unexpected-response', async (_, response) => {
          const { code } = JSON.parse(String(await buffer(response)));
          resolve(`${response.statusCode} ${code}`);
        }),
      ),
    ]);
    return { socket, refusal, ended, closed };
  }

  test('carry 10 MB each way, each half closed by itself, and leave a line with port, outcome and bytes', async (t) => {
    const content = randomBytes(10_000_000);
    const port = await serve(async (socket) => {
      const all = await buffer(socket);
      socket.end(all);
    });
    const { socket, ended, closed } = await dial(t, port);
    for (let at = 0; at < content.length; at += 100_000) socket.send(content.subarray(at, at + 100_000));
    socket.send('');
    assert.equal(sha256(await ended), sha256(content));
    assert.deepEqual(await closed, [1000, '']);
    const line = await eventually(() => log.entered().find((each) => each.port === port), { what: 'a line' });
    const { user, requestId, ...facts } = line;
    const about = { namespace: 'default', session: 'notes', want: 'ports', port };
    assert.deepEqual(facts, { ...about, outcome: 'Done', bytes: 20_000_000 });
    assert.match(String(user), /^system:serviceaccount:default:user-/);
    assert.match(String(requestId), /^[0-9a-f-]{36}$/);
  });

  test('that end first still take what the client sends', async (t) => {
    const all = Promise.withResolvers<string>();
    const port = await serve((socket) => {
      socket.end('bye');
      text(socket).then(all.resolve, all.reject);
    });
    const { socket, ended, closed } = await dial(t, port);
    assert.equal(String(await ended), 'bye');
    socket.send(Buffer.from('and more'));
    socket.send('');
    assert.equal(await all.promise, 'and more');
    assert.equal((await closed)[0], 1000);
  });

  test('are refused where nothing listens, without the right, and where they are no ports', async (t) => {
    assert.equal((await dial(t, 1)).refusal, '502 PortRefused');
    assert.equal((await dial(t, 0)).refusal, '400 InvalidParameter');
    assert.equal((await dial(t, 65_536)).refusal, '400 InvalidParameter');
    assert.equal((await dial(t, 'http')).refusal, '400 InvalidParameter');
    const other = await api.user(EVERYTHING);
    assert.equal((await dial(t, 1, other.token)).refusal, '403 Forbidden');
  });

  test('that reset close the socket with the reason, and a client that leaves resets the port’s side', async (t) => {
    const sockets: Socket[] = [];
    const port = await serve((socket) => void sockets.push(socket));
    const first = await dial(t, port);
    sockets[0]?.resetAndDestroy();
    const [code, reason] = await first.closed;
    assert.equal(code, 1011);
    assert.match(reason, /^PortFailed: Port \d+ of session notes: Connection reset by peer/);
    const second = await dial(t, port);
    const failed = once(sockets[1] as Socket, 'error');
    second.socket.terminate();
    assert.equal((await failed)[0].code, 'ECONNRESET');
    await eventually(() => log.entered().some((line) => line.port === port && line.outcome === 'Left'), {
      what: 'the line',
    });
  });
});
