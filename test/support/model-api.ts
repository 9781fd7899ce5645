import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A message that the model was given: its author and its text. `tool` is the author of what a tool printed. */
export interface Said {
  role: string;
  text: string;
}

/** A line that a person wrote. Agents add text of their own to messages of the user. */
const PROMPT = /^(Clone|What) .*/m;

/** Parts of a prompt that the model understands, with the command that does each. */
const WORK: [asked: RegExp, command: (match: RegExpExecArray) => string][] = [
  [/Clone (\S+) into (\w+)/, ([, from, to]) => `git clone --quiet "${from}" ${to}`],
  [/hello\.sh say goodbye, too/, () => `echo 'echo goodbye' >>greeter/hello.sh`],
  [/add a test/, () => `echo 'sh hello.sh | grep -x goodbye' >greeter/test.sh`],
  [/Last, run: (.*)/, ([, command = '']) => command],
];

/** What the model says: a text, or a command for the agent's shell tool. */
type Answer = { text: string } | { command: string };

/**
 * Replaces the models' HTTP APIs on loopback: Anthropic's Messages (`/v1/messages`), OpenAI's Responses
 * (`/v1/responses`) and Google's Gemini (`/v1beta/models/…:streamGenerateContent`), streamed. It answers with the
 * number of prompts and the text of the last one, so that an answer shows whether a conversation continued. Before that it
 * has the agent's shell do what `WORK` understands of the prompt. `await using` ends it.
 */
export class ModelApi {
  /** The conversation of each request, oldest first. */
  readonly requests: Said[][] = [];
  /** Request lines, also those of requests without an answer. */
  readonly lines: string[] = [];
  /** Status with which every request is refused, if set. */
  refuse: number | undefined;
  readonly #server = createServer((request, response) => void this.#serve(request, response));

  static async start(): Promise<ModelApi> {
    const api = new ModelApi();
    await new Promise<void>((resolve) => api.#server.listen(0, '127.0.0.1', resolve));
    return api;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.lines.push(`${request.method} ${request.url}`);
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece);
    const path = (request.url ?? '').split('?')[0];
    const answers: Record<string, (body: Json, response: ServerResponse) => void> = {
      '/v1/messages': (body) => this.#messages(body, response),
      '/v1/responses': (body) => this.#responses(body, response),
      ':streamGenerateContent': (body) => this.#generate(body, response),
      ':generateContent': () => route(response),
    };
    // The path of Gemini's request contains the model's name.
    const answer = answers[path?.replace(/^.*:/, ':') ?? ''];
    if (this.refuse !== undefined || !answer || request.method !== 'POST') {
      response.writeHead(this.refuse ?? 404, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ type: 'error', error: { type: 'api_error', message: 'refused by the stand-in' } }));
      return;
    }
    answer(JSON.parse(Buffer.concat(pieces).toString('utf8')), response);
  }

  /** Prompts and answers in the last request; none of the texts that agents add, each to its own messages. */
  dialogue(): string[] {
    return (this.requests.at(-1) ?? []).flatMap(({ text }) => text.match(/^(Clone|What|ANSWER) .*/gm) ?? []);
  }

  #answer(said: Said[]): Answer {
    this.requests.push(said);
    const last = said.findLastIndex(isPrompt);
    const prompt = said[last]?.text.match(PROMPT)?.[0] ?? 'nothing';
    const commands = WORK.flatMap(([asked, command]) => {
      const match = asked.exec(prompt);
      return match ? [command(match)] : [];
    });
    const hasRun = said.slice(last + 1).some(({ role }) => role === 'tool');
    if (commands.length > 0 && !hasRun) return { command: commands.join(' && ') };
    return { text: `ANSWER to ${said.filter(isPrompt).length}: ${prompt}` };
  }

  #messages(body: Json, response: ServerResponse): void {
    const answer = this.#answer(list(body.messages).flatMap((message) => saidIn(message.role, message.content)));
    const usage = { input_tokens: 11, output_tokens: 7, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 };
    const message = { id: 'msg_1', type: 'message', role: 'assistant', model: String(body.model), stop_sequence: null };
    const [block, delta, stop_reason] =
      'text' in answer
        ? [{ type: 'text', text: '' }, { type: 'text_delta', text: answer.text }, 'end_turn']
        : [
            { type: 'tool_use', id: `toolu_${this.requests.length}`, name: 'Bash', input: {} },
            {
              type: 'input_json_delta',
              partial_json: JSON.stringify({ command: answer.command, description: 'Work' }),
            },
            'tool_use',
          ];
    if (!body.stream) {
      const content = 'text' in answer ? [{ type: 'text', text: answer.text }] : [];
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ ...message, content, stop_reason: 'end_turn', usage }));
      return;
    }
    const start = { ...message, stop_reason: null, content: [], usage: { ...usage, output_tokens: 1 } };
    stream(response, [
      { type: 'message_start', message: start },
      { type: 'content_block_start', index: 0, content_block: block },
      { type: 'content_block_delta', index: 0, delta },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 7 } },
      { type: 'message_stop' },
    ]);
  }

  #responses(body: Json, response: ServerResponse): void {
    const answer = this.#answer(
      list(body.input).map(({ type, role, content, output }) =>
        type === 'function_call_output'
          ? { role: 'tool', text: textOf(output) }
          : { role: String(role), text: textOf(content) },
      ),
    );
    const usage = {
      input_tokens: 11,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 7,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 18,
    };
    const created = { type: 'response.created', response: { id: 'resp_1', status: 'in_progress', output: [] } };
    const completed = (item: object) => [
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response: { id: 'resp_1', status: 'completed', output: [item], usage } },
    ];
    if ('command' in answer) {
      const args = JSON.stringify({ cmd: answer.command });
      const call = { type: 'function_call', id: 'fc_1', call_id: `call_${this.requests.length}`, name: 'exec_command' };
      stream(response, [created, ...completed({ ...call, arguments: args })]);
      return;
    }
    const content = [{ type: 'output_text', text: answer.text, annotations: [] }];
    const item = { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content };
    stream(response, [
      created,
      { type: 'response.output_item.added', output_index: 0, item: { ...item, status: 'in_progress', content: [] } },
      { type: 'response.output_text.delta', item_id: 'msg_1', output_index: 0, content_index: 0, delta: answer.text },
      ...completed(item),
    ]);
  }

  #generate(body: Json, response: ServerResponse): void {
    const answer = this.#answer(list(body.contents).flatMap(({ role, parts }) => saidIn(role, parts)));
    const part =
      'text' in answer
        ? { text: answer.text }
        : { functionCall: { name: 'run_shell_command', args: { command: answer.command, description: 'Work' } } };
    const content = { role: 'model', parts: [part] };
    const usageMetadata = { promptTokenCount: 11, candidatesTokenCount: 7, totalTokenCount: 18 };
    const candidates = [{ index: 0, content, finishReason: 'STOP' }];
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(`data: ${JSON.stringify({ candidates, usageMetadata })}\n\n`);
  }
}

/**
 * Answers the request by which Gemini CLI first asks for a model for the prompt; after a refusal it writes a report to
 * the machine's /tmp.
 */
function route(response: ServerResponse): void {
  const text = JSON.stringify({ complexity_reasoning: 'a stand-in', complexity_score: 1 });
  const content = { role: 'model', parts: [{ text }] };
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ candidates: [{ index: 0, content, finishReason: 'STOP' }] }));
}

type Json = Record<string, unknown>;

function list(value: unknown): Json[] {
  return Array.isArray(value) ? value : [];
}

const isPrompt = ({ role, text }: Said) => role === 'user' && PROMPT.test(text);

/** Returns the text of a message, and apart from it what tools printed, which Anthropic and Google have in messages of the user. */
function saidIn(role: unknown, content: unknown): Said[] {
  const tools = list(content).filter((part) => part.type === 'tool_result' || part.functionResponse);
  return [
    { role: String(role), text: textOf(content) },
    ...tools.map((part) => ({ role: 'tool', text: JSON.stringify(part.content ?? part.functionResponse) })),
  ];
}

/** Returns the text of a message, whether a string or parts. */
function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  return list(content)
    .map((part) => (typeof part.text === 'string' ? part.text : ''))
    .join('\n');
}

function stream(response: ServerResponse, events: { type: string; [key: string]: unknown }[]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  for (const [i, event] of events.entries()) {
    response.write(`event: ${event.type}\ndata: ${JSON.stringify({ ...event, sequence_number: i })}\n\n`);
  }
  response.end();
}
