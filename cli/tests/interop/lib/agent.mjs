// An agent process with the official SDK's client on its pipes. Every message of both sides is kept.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Readable, Writable } from 'node:stream';
import * as acp from '@agentclientprotocol/sdk';
import { inTime, Watched } from './report.mjs';
import { violation } from './schema.mjs';

export const WAXLOG = process.env.WAXLOG_BINARY;
export const CLIENT = { name: 'waxlog-interop', title: 'Interop tests', version: '1.0.0' };

const { agent: method } = acp.methods;

// The SDK tells what it rejects of a peer's messages nowhere else.
const complaints = [];
console.error = (...words) => complaints.push(words);

export class Agent {
  /** The agent's messages. */
  lines = new Watched();
  /** What was wrong with them by the schema. */
  violations = [];
  #methods = new Map();

  /** Starts an agent on the logs in `stage.home`, asking `stage.model`. */
  static start(stage) {
    const agent = new Agent();
    agent.process = spawn(WAXLOG, ['agent'], {
      cwd: stage.work,
      stdio: ['pipe', 'pipe', 'pipe'],
      // Nothing is inherited that could lead requests away from loopback or hints into the prompt.
      env: {
        PATH: process.env.PATH,
        HOME: stage.folder,
        WAXLOG_HOME: stage.home,
        BUZZ_AGENT_PROVIDER: 'openai',
        OPENAI_COMPAT_API: 'chat',
        OPENAI_COMPAT_API_KEY: 'no-key',
        OPENAI_COMPAT_BASE_URL: stage.model.url,
        OPENAI_COMPAT_MODEL: 'scripted',
        ...stage.mark,
      },
    });
    agent.stderr = '';
    agent.process.stderr.setEncoding('utf8').on('data', (text) => (agent.stderr += text));
    agent.exited = once(agent.process, 'exit');
    const plain = acp.ndJsonStream(Writable.toWeb(agent.process.stdin), Readable.toWeb(agent.process.stdout));
    agent.connection = acp
      .client({ name: CLIENT.name })
      .onNotification(acp.methods.client.session.update, ({ params }) => agent.updates.push(params))
      .connect(agent.#observed(plain));
    return agent;
  }

  /** The updates as the SDK handed them out. */
  updates = new Watched();

  initialize() {
    const clientCapabilities = { fs: { readTextFile: false, writeTextFile: false }, terminal: false };
    return this.ask(method.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientInfo: CLIENT,
      clientCapabilities,
    });
  }

  ask(name, params) {
    return inTime(this.connection.agent.request(name, params), `the answer to ${name}`);
  }

  newSession(params) {
    return this.ask(method.session.new, params);
  }

  prompt(sessionId, text) {
    return this.ask(method.session.prompt, { sessionId, prompt: [{ type: 'text', text }] });
  }

  cancel(sessionId) {
    return this.connection.agent.notify(method.session.cancel, { sessionId });
  }

  /** Waits for the update that says that a call has this status. */
  status(toolCallId, status) {
    const fits = ({ update }) => update.toolCallId === toolCallId && update.status === status;
    return this.updates.first(fits, `call ${toolCallId} ${status}`);
  }

  /** All that was said of a call: `pending`, `in_progress`, ... */
  statuses(toolCallId) {
    const updates = this.updates.items.map(({ update }) => update);
    return updates.filter((update) => update.toolCallId === toolCallId).map((update) => update.status);
  }

  /** The last update of a call. */
  told(toolCallId) {
    return this.updates.items.findLast(({ update }) => update.toolCallId === toolCallId)?.update;
  }

  /** All that this agent's client found wrong so far, the SDK's own complaints included. */
  faults() {
    return [...this.violations, ...complaints];
  }

  /** Ends the agent as a client does, by closing its stdin; gives the exit code. */
  async close() {
    this.process.stdin.end();
    const [code] = await inTime(this.exited, 'the end of the agent');
    return code;
  }

  /** Kills the agent and waits until it is gone. */
  async kill() {
    this.process.kill('SIGKILL');
    await this.exited;
  }

  #observed(stream) {
    const sent = new TransformStream({
      transform: (message, out) => {
        if ('id' in message && message.method) this.#methods.set(message.id, message.method);
        out.enqueue(message);
      },
    });
    // A closed pipe shows in the answers that do not come.
    sent.readable.pipeTo(stream.writable).catch(() => {});
    const received = new TransformStream({
      transform: (message, out) => {
        this.lines.push(message);
        const wrong = violation(message, this.#methods.get(message.id));
        if (wrong) this.violations.push({ wrong, message });
        out.enqueue(message);
      },
    });
    return { readable: stream.readable.pipeThrough(received), writable: sent.writable };
  }
}
