import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A message that the model was given: its author and its text. */
export interface Said {
  role: string;
  text: string;
}

/**
 * Replaces the models' HTTP APIs on loopback: Anthropic's Messages (`/v1/messages`), OpenAI's Responses
 * (`/v1/responses`) and Google's Gemini (`/v1beta/models/…:streamGenerateContent`), streamed. It answers with the
 * number of user messages and the text of the last one, so that an answer shows whether a conversation continued.
 * `await using` ends it.
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

  #answer(said: Said[]): string {
    this.requests.push(said);
    const questions = said.filter(({ role, text }) => role === 'user' && text.includes('QUESTION'));
    return `ANSWER to ${questions.length}: ${questions.at(-1)?.text.match(/QUESTION.*/)?.[0] ?? 'nothing'}`;
  }

  #messages(body: Json, response: ServerResponse): void {
    const said = list(body.messages).map((message) => ({ role: String(message.role), text: textOf(message.content) }));
    const text = this.#answer(said);
    const model = String(body.model);
    const usage = { input_tokens: 11, output_tokens: 7, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 };
    const message = { id: 'msg_1', type: 'message', role: 'assistant', model, stop_reason: null, stop_sequence: null };
    if (!body.stream) {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ ...message, content: [{ type: 'text', text }], stop_reason: 'end_turn', usage }));
      return;
    }
    stream(response, [
      { type: 'message_start', message: { ...message, content: [], usage: { ...usage, output_tokens: 1 } } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 7 } },
      { type: 'message_stop' },
    ]);
  }

  #responses(body: Json, response: ServerResponse): void {
    const said = list(body.input).map((item) => ({ role: String(item.role), text: textOf(item.content) }));
    const text = this.#answer(said);
    const content = [{ type: 'output_text', text, annotations: [] }];
    const item = { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content };
    const usage = {
      input_tokens: 11,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 7,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 18,
    };
    stream(response, [
      { type: 'response.created', response: { id: 'resp_1', status: 'in_progress', output: [] } },
      { type: 'response.output_item.added', output_index: 0, item: { ...item, status: 'in_progress', content: [] } },
      { type: 'response.output_text.delta', item_id: 'msg_1', output_index: 0, content_index: 0, delta: text },
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response: { id: 'resp_1', status: 'completed', output: [item], usage } },
    ]);
  }

  #generate(body: Json, response: ServerResponse): void {
    const said = list(body.contents).map(({ role, parts }) => ({ role: String(role), text: textOf(parts) }));
    const content = { role: 'model', parts: [{ text: this.#answer(said) }] };
    const usageMetadata = { promptTokenCount: 11, candidatesTokenCount: 7, totalTokenCount: 18 };
    const answer = { candidates: [{ index: 0, content, finishReason: 'STOP' }], usageMetadata };
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(`data: ${JSON.stringify(answer)}\n\n`);
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
