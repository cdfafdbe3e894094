// The embedded relay with a client library that others wrote.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { finalizeEvent, generateSecretKey, getPublicKey, verifyEvent } from 'nostr-tools/pure';
import { Relay, useWebSocketImplementation } from 'nostr-tools/relay';
import WebSocket from 'ws';
import { check, conclude, contains, inTime, same, story, Watched } from './lib/report.mjs';

useWebSocketImplementation(WebSocket);

const now = () => Math.floor(Date.now() / 1000);

/** Starts a relay of its own in an empty folder and runs `act` with its URL. */
async function withRelay(act) {
  const home = mkdtempSync(path.join(tmpdir(), 'relay-'));
  const child = spawn(process.env.WAXLOG_BINARY, ['relay', '--listen', '127.0.0.1:0'], {
    env: { HOME: home, PATH: process.env.PATH },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  try {
    const [line] = await inTime(
      new Promise((resolve) => createInterface(child.stdout).once('line', (text) => resolve([text]))),
      'the line that says where the relay listens',
    );
    await act(line.split(' ').at(-1));
    child.kill('SIGTERM');
    same('the relay ends with code 0', await inTime(ended, 'the end of the relay'), 0);
  } finally {
    child.kill('SIGKILL');
    await ended;
    rmSync(home, { recursive: true, force: true });
  }
}

/** A client that has proven who it is. */
async function connect(url) {
  const secret = generateSecretKey();
  const sign = (kind, content, tags = []) => finalizeEvent({ kind, content, tags, created_at: now() }, secret);
  const relay = new Relay(url);
  const challenged = new Promise((resolve) => {
    relay.onauth = async (draft) => finalizeEvent(draft, secret);
    const look = setInterval(() => {
      if (relay.challenge) {
        clearInterval(look);
        resolve();
      }
    }, 5);
  });
  await inTime(relay.connect(), 'a connection');
  await inTime(challenged, 'a challenge');
  await inTime(relay.auth(async (draft) => finalizeEvent(draft, secret)), 'the answer to the proof').catch((error) => {
    // The library may have answered by itself already.
    if (!String(error).includes('already')) throw error;
  });
  return { relay, sign, key: getPublicKey(secret) };
}

/** What is stored for a filter, and then what comes. */
function subscribe(relay, filters) {
  const events = new Watched();
  const stored = new Promise((resolve) => {
    relay.subscribe(filters, { onevent: (event) => events.push(event), oneose: () => resolve(events.items.slice()) });
  });
  return { events, stored: inTime(stored, 'the end of what is stored') };
}

await story('nostr-tools', () => withRelay(async (url) => {
  const alice = await connect(url);
  const bob = await connect(url);
  check('two clients are let in by NIP-42', alice.relay.connected && bob.relay.connected, url);

  const note = alice.sign(1, 'a first note');
  await inTime(alice.relay.publish(note), 'OK for a note');
  const found = await subscribe(bob.relay, [{ ids: [note.id] }]).stored;
  same('a published note is found by its id', found.map(({ id }) => id), [note.id]);
  check('and verifies', found.every((event) => verifyEvent(event)), found);

  const live = subscribe(bob.relay, [{ kinds: [1], authors: [alice.key], since: now() - 5 }]);
  await live.stored;
  const second = alice.sign(1, 'a second note');
  await inTime(alice.relay.publish(second), 'OK for a second note');
  const came = await live.events.first(({ id }) => id === second.id, 'a live note');
  same('a live subscription gets what is published', came.content, 'a second note');

  const channel = randomUUID();
  await inTime(
    alice.relay.publish(alice.sign(9007, '', [['h', channel], ['name', 'bees'], ['visibility', 'open']])),
    'OK for a channel',
  );
  const listening = subscribe(bob.relay, [{ kinds: [9], '#h': [channel] }]);
  await listening.stored;
  const message = alice.sign(9, 'hello, bees', [['h', channel]]);
  await inTime(alice.relay.publish(message), 'OK for a message');
  const heard = await listening.events.first(({ id }) => id === message.id, 'a message of the channel');
  same('a message reaches who listens to its channel', heard.content, 'hello, bees');
  const described = await subscribe(bob.relay, [{ kinds: [39000], '#d': [channel] }]).stored;
  same('the channel is described by the relay', described[0]?.tags.find(([name]) => name === 'name')?.[1], 'bees');

  await inTime(alice.relay.publish(alice.sign(5, '', [['e', note.id]])), 'OK for a deletion');
  const left = await subscribe(bob.relay, [{ ids: [note.id] }]).stored;
  same('a deleted note is gone', left, []);

  const forged = { ...alice.sign(1, 'mine'), content: 'not mine' };
  const refusal = await inTime(alice.relay.publish(forged), 'the refusal of a forged note').catch((error) => String(error));
  contains('a forged note is refused with a reason', refusal, 'invalid:');
  const foreign = bob.sign(1, 'of bob');
  const stolen = await inTime(alice.relay.publish(foreign), 'the refusal of a note of another').catch((error) => String(error));
  contains('a note of another key is refused', stolen, 'invalid:');

  alice.relay.close();
  bob.relay.close();
}));

conclude();
