// Relays that others wrote, each on a free port of loopback.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { EventRepository, EventType, EventUtils, LogLevel } from '@nostr-relay/common';
import { NostrRelay } from '@nostr-relay/core';
import { Validator } from '@nostr-relay/validator';
import { matchFilter } from 'nostr-tools/filter';
import { WebSocketServer } from 'ws';
import { inTime } from './report.mjs';

/** The relay of npm leaves storage to its user. Its own matching looks at no tags, so nostr-tools says what matches. */
class Memory extends EventRepository {
  #events = [];

  isSearchSupported() {
    return false;
  }

  upsert(event) {
    const key = keyOf(event);
    const old = this.#events.find((known) => keyOf(known) === key);
    const wins = !old || (key !== event.id && (event.created_at - old.created_at || (event.id < old.id ? 1 : -1)) > 0);
    if (wins) this.#events = [...this.#events.filter((known) => known !== old), event];
    return { isDuplicate: !wins };
  }

  find({ limit = 500, ...filter }) {
    const found = this.#events.filter((event) => matchFilter(filter, event));
    return found.sort((a, b) => b.created_at - a.created_at || (a.id < b.id ? -1 : 1)).slice(0, limit);
  }

  async destroy() {
    this.#events = [];
  }
}

function keyOf(event) {
  switch (EventUtils.getType(event.kind)) {
    case EventType.REPLACEABLE:
      return `${event.kind}:${event.pubkey}`;
    case EventType.PARAMETERIZED_REPLACEABLE:
      return `${event.kind}:${event.pubkey}:${EventUtils.extractDTagValue(event)}`;
    default:
      return event.id;
  }
}

/** The relay of npm. With `asksAtOnce` it challenges with its first frame (NIP-42), else never. */
export async function withNpmRelay({ asksAtOnce }, act) {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  await once(server, 'listening');
  const relay = new NostrRelay(new Memory(), {
    hostname: asksAtOnce ? '127.0.0.1' : undefined,
    logLevel: LogLevel.ERROR,
    // A cached word on an event would hide whether the relay knows a duplicate.
    eventHandlingResultCacheTtl: 0,
    filterResultCacheTtl: 0,
  });
  const validator = new Validator();
  server.on('connection', (socket) => {
    relay.handleConnection(socket, '127.0.0.1');
    socket.on('close', () => relay.handleDisconnect(socket));
    socket.on('message', async (data) => {
      try {
        await relay.handleMessage(socket, await validator.validateIncomingMessage(data));
      } catch (error) {
        socket.send(JSON.stringify(['NOTICE', `invalid: ${error.message}`]));
      }
    });
  });
  try {
    await act(`ws://127.0.0.1:${server.address().port}`);
  } finally {
    for (const socket of server.clients) socket.terminate();
    server.close();
    await relay.destroy();
  }
}

/** The relay of PyPI. With `asksWhenNeeded` nothing is read or written without a login, which it asks for then. */
export async function withPypiRelay({ asksWhenNeeded }, act) {
  const script = path.join(path.dirname(fileURLToPath(import.meta.url)), '../python/relay.py');
  const child = spawn(path.join(process.env.PYTHON_BIN, 'python'), [script, ...(asksWhenNeeded ? ['--login'] : [])], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  try {
    const [url] = await inTime(once(createInterface(child.stdout), 'line'), 'the URL of the relay of PyPI');
    await act(url);
  } finally {
    child.kill('SIGKILL');
    await ended;
  }
}
