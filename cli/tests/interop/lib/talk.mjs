// The example `talk`: the engine's own client of a relay, a frame on each line.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { inTime, Watched } from './report.mjs';

export class Talk {
  /** Everything it has said. */
  frames = new Watched();
  #process;
  #exited;

  static async start(url, ...options) {
    const talk = new Talk();
    talk.#process = spawn(process.env.TALK_BINARY, [...options, url], { stdio: ['pipe', 'pipe', 'inherit'] });
    talk.#exited = once(talk.#process, 'exit');
    createInterface(talk.#process.stdout).on('line', (line) => talk.frames.push(JSON.parse(line)));
    const [, key] = await talk.heard('KEY', 0);
    talk.key = key;
    return talk;
  }

  /** The first frame of a verb from index `from` on, that `fits`. */
  heard(verb, from, fits = () => true) {
    return this.frames.first((frame) => frame[0] === verb && fits(frame), `${verb} of the client`, from);
  }

  /** Sends a line and gives the first frame of a verb that follows. */
  async ask(line, verb, fits) {
    const from = this.frames.items.length;
    this.#process.stdin.write(`${JSON.stringify(line)}\n`);
    return this.heard(verb, from, fits);
  }

  say(line) {
    this.#process.stdin.write(`${JSON.stringify(line)}\n`);
  }

  /** Signs and publishes an event; gives the relay's word on it. */
  sign(kind, content, tags = []) {
    return this.ask(['SIGN', kind, content, tags], 'OK');
  }

  publish(event) {
    return this.ask(['EVENT', event], 'OK', ([, id]) => id === event.id);
  }

  /** Subscribes; gives what is stored. */
  async stored(id, ...filters) {
    const from = this.frames.items.length;
    await this.ask(['REQ', id, ...filters], 'EOSE', ([, subscription]) => subscription === id);
    return this.events(id, from);
  }

  /** The events that have come for a subscription, from index `from` on. */
  events(id, from = 0) {
    const ofIt = ([verb, subscription]) => verb === 'EVENT' && subscription === id;
    return this.frames.items.slice(from).filter(ofIt).map(([, , event]) => event);
  }

  /** Ends it; gives its exit code and what it dropped. */
  async end() {
    this.#process.stdin.end();
    const [code] = await inTime(this.#exited, 'the end of the client');
    const last = this.frames.items.at(-1);
    return { code, dropped: last?.[0] === 'DROPPED' ? last.slice(1) : last };
  }

  async kill() {
    this.#process.kill('SIGKILL');
    await this.#exited;
  }
}
