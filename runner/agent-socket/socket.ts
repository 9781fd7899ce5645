import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { MAX_RAW_BYTES } from '../../core/result/output.ts';
import type { Hidden } from '../../core/text/hidden.ts';
import { type AgentReply, type AgentRequest, readRequest } from './requests.ts';

/** A process that opens more is one that has gone astray. */
const MAX_CONNECTIONS = 64;
/** A result may be laid out widely. */
const MAX_LINE = MAX_RAW_BYTES;
/** Requests of one connection that are answered before anything else gets its turn. */
const IN_A_ROW = 50;
const LINE_FEED = 0x0a;

/** Answers one request. `gone` aborts when the asker has gone. Never rejects. */
export type Answer = (request: AgentRequest, gone: AbortSignal) => Promise<AgentReply>;

/**
 * Where the session's processes reach the runner: a unix socket that only their user can open, a line of JSON for each
 * request and each reply, in the order of the requests of a connection. Resolves when it listens.
 */
export function listenForAgent(path: string, secrets: Hidden, answer: Answer): Promise<Server> {
  const server = createServer((socket) => serve(socket, secrets, answer));
  server.maxConnections = MAX_CONNECTIONS;
  rmSync(path, { force: true });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    // It is made within this call: at no moment anybody else may open it.
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
  // An end of what it sends looks the same: who asks keeps the connection open until it is answered. `close` comes only
  // after that, when another may have asked the same already.
  socket.once('end', () => gone.abort());
  socket.once('close', () => {
    gone.abort();
    closed.abort();
  });
  converse(socket, secrets, (request) => answer(request, gone.signal), closed.signal).catch(() => socket.destroy());
}

/** One request at a time: who sends without reading the replies is not read any further. Rejects once the connection is closed. */
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
