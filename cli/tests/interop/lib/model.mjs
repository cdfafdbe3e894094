// A scripted model endpoint on loopback that speaks OpenAI's chat completions.
import http from 'node:http';
import { once } from 'node:events';
import { Watched } from './report.mjs';

/** An answer that asks for calls: `[id, name, arguments]` each. */
export const calls = (...list) => ({ calls: list });
/** An answer that ends the turn. */
export const says = (text) => ({ text, calls: [] });

export class Model {
  /** The bodies of all requests, parsed, in order. */
  requests = new Watched();
  #answers = [];
  #server = http.createServer((request, response) => this.#serve(request, response));

  static async start() {
    const model = new Model();
    model.#server.listen(0, '127.0.0.1');
    await once(model.#server, 'listening');
    return model;
  }

  get url() {
    return `http://127.0.0.1:${this.#server.address().port}/v1`;
  }

  /** Adds the answers to the next requests. */
  script(...answers) {
    this.#answers.push(...answers);
  }

  /** The last request so far. */
  get last() {
    return this.requests.items.at(-1);
  }

  stop() {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #serve(request, response) {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    const number = this.requests.items.length + 1;
    const answer = this.#answers.shift();
    response.setHeader('content-type', 'application/json');
    if (!answer) {
      // 400 is not tried again, so a script that is too short shows at once.
      response.statusCode = 400;
      response.end(JSON.stringify({ error: { message: `no answer is scripted for request ${number}` } }));
    } else {
      response.end(JSON.stringify(completion(number, answer)));
    }
    this.requests.push(JSON.parse(body));
  }
}

function completion(number, { text = '', calls: asked }) {
  const toolCalls = asked.map(([id, name, args]) => ({
    id,
    type: 'function',
    function: { name, arguments: JSON.stringify(args) },
  }));
  const message = { role: 'assistant', content: text };
  if (toolCalls.length > 0) message.tool_calls = toolCalls;
  return {
    id: `chatcmpl-${number}`,
    object: 'chat.completion',
    created: 1_767_225_600 + number,
    model: 'scripted',
    choices: [{ index: 0, message, finish_reason: toolCalls.length > 0 ? 'tool_calls' : 'stop' }],
    usage: { prompt_tokens: 100 * number, completion_tokens: 10, total_tokens: 100 * number + 10 },
  };
}

/** The results in a request, in their order: `{id, text}`. */
export function results(request) {
  const tools = request.messages.filter((message) => message.role === 'tool');
  return tools.map((message) => ({ id: message.tool_call_id, text: message.content }));
}

/** The text of one result. */
export function result(request, id) {
  return results(request).find((found) => found.id === id)?.text;
}

/** The images that ride in a request, as data URLs. */
export function images(request) {
  const parts = request.messages.flatMap((message) => (Array.isArray(message.content) ? message.content : []));
  return parts.filter((part) => part.type === 'image_url').map((part) => part.image_url.url);
}

/** Calls whose result does not stand directly after them, where every model API wants it. */
export function unpaired(request) {
  return request.messages.flatMap((message, index) => {
    const after = request.messages.slice(index + 1);
    const end = after.findIndex((next) => next.role !== 'tool');
    const answered = (end < 0 ? after : after.slice(0, end)).map((next) => next.tool_call_id);
    return (message.tool_calls ?? []).map((call) => call.id).filter((id) => !answered.includes(id));
  });
}
