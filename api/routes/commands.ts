import { randomUUID } from 'node:crypto';
import * as z from 'zod';
import { defined } from '../../core/defined.ts';
import { COMMAND_ID } from '../../core/enter/command-start.ts';
import { encodeFrame, encodeJson, FrameDecoder, type FrameKind } from '../../core/enter/frames.ts';
import type { CommandListed, CommandReady, CommandStart } from '../../core/enter/hello.ts';
import { parseDuration } from '../../core/resources/duration.ts';
import type { StoredSession } from '../../core/resources/kinds.ts';
import { collect, giveInput, outputFrom, TEXT_BYTES } from '../inside/commands.ts';
import { enter, type SessionCall, traced, tracing } from '../inside/enter.ts';
import { Download } from '../inside/files.ts';
import {
  command,
  commandCreate,
  commandList,
  commandListed,
  commandQuery,
  commandSignal,
  flag,
  inputTaken,
  insideQuery,
  sessionParams,
} from '../openapi/schemas.ts';
import { Problem } from '../problems/problems.ts';
import { boundValue, hash } from '../requests/idempotency.ts';
import { type Route, route, type Services } from '../route.ts';

const PATH = '/v1/namespaces/{namespace}/sessions/{session}/commands';
/** Frames that a client of a WebSocket may send. */
const CLIENT_FRAMES: ReadonlySet<FrameKind> = new Set([
  'input',
  'inputEnd',
  'acknowledge',
  'resize',
  'signal',
  'exit',
  'beat',
]);
/** Time that a client has to say that it has the exit, milliseconds. A command whose exit nobody has is kept. */
const EXIT_MS = 1000;

const commandParams = sessionParams.extend({
  id: z.string().regex(COMMAND_ID, 'is no id of a command').describe('Id of a command.'),
});
const position = () => z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER);
const FROM = 'Position of the first byte, counted over both streams; default: the oldest that is kept.';

const right = (verb: 'get' | 'create') => [
  { verb, resource: 'sessions' as const, subresource: 'exec' as const, nameParam: 'session' },
];
const holds = () => 'commands' as const;

export const commandRoutes: Route[] = [
  route({
    method: 'POST',
    path: PATH,
    operationId: 'startCommand',
    summary: 'Run a command in a running session',
    description:
      'A repeat with the same Idempotency-Key returns the same command and starts none; in another pod it is CommandLost. With wait the answer has the output, and the exit once it has ended.',
    rights: right('create'),
    params: sessionParams,
    query: commandQuery,
    body: commandCreate,
    creates: true,
    codes: ['CommandConflict', 'CommandFailed', 'CommandLost', 'TooManyCommands'],
    responses: { 201: { description: 'The command.', schema: command } },
    holds,
    async handle(call, services) {
      const { params, query, body, key, caller, memory, signal } = call;
      const { namespace, session: name } = params;
      const scope = [caller.username, namespace, name];
      const ownId = key === undefined ? randomUUID() : `key-${hash(JSON.stringify([...scope, key]))}`;
      const id = body.id ?? ownId;
      if (query.wait !== undefined) memory.hold(4 * TEXT_BYTES);
      const wish = { want: 'command' as const, id, start: startOf(body) };
      const check = async ({ metadata, status }: StoredSession) => {
        if (key === undefined) return;
        // The pod's runner knows its own commands only: a repeat that comes to another pod would start one more.
        const value = `${metadata.uid}.${status?.incarnation}`;
        const bound = await boundValue(services, { scope, key, value, session: { namespace, name } });
        if (bound === value) return;
        throw new Problem(
          'CommandLost',
          `The command with this Idempotency-Key was in another pod of session "${name}".`,
        );
      };
      const { frames, trace } = await enter(call, services, wish, { check });
      const { started } = frames.ready as CommandReady;
      const begun = { id, started };
      if (query.wait === undefined) {
        frames.close();
        trace.end();
        return { status: 201, body: begun };
      }
      const ms = parseDuration(query.wait);
      return tracing(trace, async () => {
        const { bytes, ...output } = await collect(frames, { clock: services.clock, ms, signal });
        trace.add(bytes);
        return { status: 201, body: { ...begun, ...output } };
      });
    },
  }),
  route({
    method: 'GET',
    path: PATH,
    operationId: 'listCommands',
    summary: 'List the commands of a session’s pod',
    description: 'Those that run, and those whose exit no client has acknowledged, for ten minutes.',
    rights: right('get'),
    params: sessionParams,
    query: insideQuery,
    responses: { 200: { description: 'The commands.', schema: commandList } },
    holds,
    handle: async (call, services) => ({ status: 200, body: { items: await listed(call, services) } }),
  }),
  route({
    method: 'GET',
    path: `${PATH}/{id}`,
    operationId: 'getCommand',
    summary: 'A command of a session, with its exit once it has ended',
    rights: right('get'),
    params: commandParams,
    query: insideQuery,
    codes: ['CommandNotFound'],
    responses: { 200: { description: 'The command.', schema: commandListed } },
    holds,
    async handle(call, services) {
      const found = (await listed(call, services)).find(({ id }) => id === call.params.id);
      if (found) return { status: 200, body: found };
      throw new Problem('CommandNotFound', `The session's pod has no command ${call.params.id}.`);
    },
  }),
  route({
    method: 'GET',
    path: `${PATH}/{id}/output`,
    operationId: 'getCommandOutput',
    summary: 'The output of a command',
    description:
      'With stream the bytes of that one; without, records of both (application/vnd.berth.output): a letter (O output, L lost, Q exit), the length as 32 bits, then for O the stream (1, 2) and the position as 64 bits before the bytes, for L two positions, for Q JSON.',
    rights: right('get'),
    params: commandParams,
    query: insideQuery.extend({
      stream: z.enum(['stdout', 'stderr']).optional(),
      from: position().optional().describe(FROM),
      follow: flag().describe('Until the command has ended. ?follow means true.'),
    }),
    codes: ['CommandFailed', 'CommandLost', 'CommandNotFound', 'OutputLost'],
    responses: {
      200: {
        description: 'The output.',
        schema: 'File',
        also: { 'application/vnd.berth.output': 'File' },
        headers: ['Berth-Output-Next'],
      },
    },
    holds,
    async handle(call, services) {
      const { params, query } = call;
      const { stream, from } = query;
      const wish = { want: 'command' as const, id: params.id, from: from ?? 0 };
      const { frames, trace } = await enter(call, services, wish);
      const { next } = frames.ready as CommandReady;
      return {
        status: 200,
        content: traced(outputFrom(frames, { stream, from, follow: query.follow }), frames, trace),
        headers: {
          'content-type': stream ? 'application/octet-stream' : 'application/vnd.berth.output',
          'berth-output-next': String(next),
        },
      };
    },
  }),
  route({
    method: 'POST',
    path: `${PATH}/{id}/input`,
    operationId: 'giveCommandInput',
    summary: 'Give a command input',
    description:
      'Each byte is taken once: one that came before is left out. Answered once the command’s stdin has all.',
    rights: right('create'),
    params: commandParams,
    query: insideQuery.extend({
      at: position().describe('Position of the first byte of the body.'),
      end: flag().describe('The input ends with the body. ?end means true.'),
    }),
    takesBytes: true,
    codes: ['CommandFailed', 'CommandLost', 'CommandNotFound'],
    responses: { 200: { description: 'The input was taken.', schema: inputTaken } },
    holds,
    async handle(call, services) {
      const { params, query, bytes } = call;
      const { id } = params;
      // A reader from the beginning would be sent all that the command has printed.
      const first = await enter(call, services, { want: 'command', id });
      first.frames.close();
      const { next } = first.frames.ready as CommandReady;
      const wish = { want: 'command' as const, id, from: next, input: true };
      const { frames, trace } = await enter(call, services, wish);
      return tracing(trace, async () => {
        const { taken, sent } = await giveInput(frames, bytes, { at: query.at, end: query.end });
        trace.add(sent);
        return { status: 200, body: { taken } };
      });
    },
  }),
  route({
    method: 'POST',
    path: `${PATH}/{id}/signal`,
    operationId: 'signalCommand',
    summary: 'Send a command a signal',
    rights: right('create'),
    params: commandParams,
    query: insideQuery,
    body: commandSignal,
    codes: ['CommandNotFound'],
    responses: { 204: { description: 'The signal was sent.' } },
    holds,
    async handle(call, services) {
      const { params, body } = call;
      const { signal, graceSeconds } = body;
      const wish = { want: 'signal' as const, id: params.id, signal };
      const grace = graceSeconds === undefined ? {} : { graceMs: Math.round(graceSeconds * 1000) };
      const { frames, trace } = await enter(call, services, { ...wish, ...grace });
      frames.close();
      trace.end();
      return { status: 204 };
    },
  }),
  route({
    method: 'GET',
    path: `${PATH}/{id}/attach`,
    operationId: 'attachCommand',
    summary: 'A WebSocket with a command’s input and output',
    description:
      'Binary messages are frames: a letter, the length as 32 bits, and the payload. R, O, L, A, X and Q come; I (position, bytes), E (position), K (position), W (rows, columns), S (name) and Q (nothing) may be sent. Q says that the client has the exit, so that the command is kept no longer.',
    rights: right('create'),
    params: commandParams,
    query: insideQuery.extend({
      from: position().optional().describe(FROM),
      input: flag().describe('Takes the command’s input over. ?input means true.'),
    }),
    codes: ['CommandFailed', 'CommandLost', 'CommandNotFound'],
    responses: { 101: { description: 'The WebSocket.' } },
    isSocket: true,
    holds,
    async handle(call, services) {
      const { params, query } = call;
      const { from = 0 } = query;
      const wish = { want: 'command' as const, id: params.id, from, input: query.input };
      const { frames, trace } = await enter(call, services, wish);
      return {
        status: 101,
        async serve(socket) {
          const decoder = new FrameDecoder();
          let hasEnded = false;
          let cancel = () => {};
          let failure: unknown;
          const sending = (async () => {
            for await (const message of socket.messages()) {
              for (const { kind, payload } of decoder.push(message)) {
                if (!CLIENT_FRAMES.has(kind)) throw new Error(`a client sends no frame "${kind}"`);
                if (kind === 'input') trace.add(payload.length);
                await frames.send(kind, payload);
              }
            }
          })()
            .catch((error: Error) => {
              failure = new Problem('Invalid', `A message is not understood: ${error.message}.`);
            })
            .finally(() => frames.close());
          try {
            await socket.send(encodeJson('ready', frames.ready));
            for await (const { kind, payload } of frames) {
              if (kind === 'output') trace.add(payload.length);
              await socket.send(encodeFrame(kind, payload));
              if (kind !== 'exit') continue;
              // The runner ends the connection once it has heard that the exit has come.
              hasEnded = true;
              cancel = services.clock.setTimer(EXIT_MS, () => frames.close());
            }
            if (hasEnded) return trace.end();
            await sending;
            if (failure) throw failure;
            trace.end(new Error('the client has gone'));
          } catch (error) {
            trace.end(error);
            throw error;
          } finally {
            cancel();
            frames.close();
          }
        },
      };
    },
  }),
];

/** Returns the start in the words that every other way into a session has for it: other ones would be a conflict. */
function startOf({ command, cwd, env, timeoutSeconds, ...body }: z.output<typeof commandCreate>): CommandStart {
  const { tty } = body;
  const size = tty && { rows: tty.rows, columns: tty.columns, ...defined({ term: tty.term }) };
  const [detach, stdin] = [body.detach || undefined, body.stdin || undefined];
  return { command, ...defined({ cwd, env, timeoutSeconds, detach, stdin, tty: size }) };
}

async function listed(call: SessionCall, services: Services): Promise<CommandListed[]> {
  const { frames, trace } = await enter(call, services, { want: 'commands' });
  const rows: Buffer[] = [];
  for await (const piece of new Download(frames, trace).bytes()) rows.push(piece);
  return JSON.parse(Buffer.concat(rows).toString('utf8')) as CommandListed[];
}
