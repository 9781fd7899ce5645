import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { MAX_RAW_BYTES } from '../../core/result/output.ts';
import type { Hidden } from '../../core/text/hidden.ts';
import { type AgentReply, type AgentRequest, readRequest } from './requests.ts';

/** Maximum concurrent connections: a process that opens more is faulty. */
const MAX_CONNECTIONS = 64;
/** Limit of a line, with room for the whitespace of a result. */
const MAX_LINE = MAX_RAW_BYTES;
/** Requests of one connection that are answered before other work gets its turn. */
const IN_A_ROW = 50;
const LINE_FEED = 0x0a;

/** Answers one request. `gone` aborts when the sender has gone. Never rejects. */
export type Answer = (request: AgentRequest, gone: AbortSignal) => Promise<AgentReply>;

/**
 * Listens on a unix socket that only the session's user can open. Each request and each reply is a line of JSON, and
 * replies come in the order of a connection's requests. Resolves when it listens.
 */
export function listenForAgent(path: string, secrets: Hidden, answer: Answer): Promise<Server> {
  const server = createServer((socket) => serve(socket, secrets, answer));
  server.maxConnections = MAX_CONNECTIONS;
  rmSync(path, { force: true });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    // The socket is created within this call, so no other user can open it at any moment.
    const umask = process.umask(0o177);
    server.listen(path, () => {
      server.off('error', reject);
      server.on('error', () => {});
      resolve(server);
    });
    process.umask(umask);
  });
}

function serve(socket: Socket, secrets: Hidden, answer: Answer): void {
  const [gone, closed] = [new AbortController(), new AbortController()];
  socket.on('error', () => {});
  // A half-closed connection looks like a closed one, so the sender must keep its side open until it has the answer.
  // `close` comes too late: another process may have asked the same by then.
  socket.once('end', () => gone.abort());
  socket.once('close', () => {
    gone.abort();
    closed.abort();
  });
  converse(socket, secrets, (request) => answer(request, gone.signal), closed.signal).catch(() => socket.destroy());
}

/**
 * Answers one request at a time: a client that does not read the replies is not read any further. Rejects once the
 * connection is closed.
 */
async function converse(
  socket: Socket,
  secrets: Hidden,
  answer: (request: AgentRequest) => Promise<AgentReply>,
  closed: AbortSignal,
): Promise<void> {
  const reply = async (line: AgentReply) => {
    if (!socket.write(`${JSON.stringify(line)}\n`)) await once(socket, 'drain', { signal: closed });
  };
  let pieces: Buffer[] = [];
  let length = 0;
  let turn = 0;
  for await (const chunk of socket.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    for (let start = 0, end = 0; end !== -1; start = end + 1) {
      end = chunk.indexOf(LINE_FEED, start);
      const piece = chunk.subarray(start, end === -1 ? chunk.length : end);
      length += piece.length;
      if (length > MAX_LINE) {
        await reply(refused('InvalidRequest', `a request of more than ${MAX_LINE} bytes`));
        socket.destroySoon();
        return;
      }
      pieces.push(piece);
      if (end === -1) break;
      const line = Buffer.concat(pieces, length).toString('utf8');
      pieces = [];
      length = 0;
      if (line.trim() === '') continue;
      const request = readRequest(line, secrets);
      await reply('problem' in request ? refused('InvalidRequest', request.problem) : await answer(request));
      turn = (turn + 1) % IN_A_ROW;
      if (turn === 0) await setImmediate();
    }
  }
}

export function refused(code: string, message: string): AgentReply {
  return { ok: false, error: { code, message } };
}
