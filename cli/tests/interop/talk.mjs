// The engine's client of a relay, on relays that others wrote, beside a client that others wrote.
import { finalizeEvent, generateSecretKey, getPublicKey, verifyEvent } from 'nostr-tools/pure';
import { Relay, useWebSocketImplementation } from 'nostr-tools/relay';
import WebSocket from 'ws';
import { withNpmRelay, withPypiRelay } from './lib/relays.mjs';
import { check, conclude, contains, inTime, same, story } from './lib/report.mjs';
import { Talk } from './lib/talk.mjs';

useWebSocketImplementation(WebSocket);

const now = () => Math.floor(Date.now() / 1000);
const ids = (events) => events.map(({ id }) => id);

// What the canonical form of an event escapes, what it must not, and what JSON encoders like to change.
const STRANGE = 'a "quote", a \\, \n\t\r\b\f, \u0001\u001f\u007f, é 🐝 \u2028 </script> \ufffd';

/** A person with a key, who signs with nostr-tools. */
function person() {
  const secret = generateSecretKey();
  const sign = (kind, content, tags = [], createdAt = now()) =>
    finalizeEvent({ kind, content, tags, created_at: createdAt }, secret);
  return { secret, sign, key: getPublicKey(secret) };
}

/** nostr-tools on a relay. It logs in when it is asked to. */
async function connected(url, { secret }) {
  const relay = new Relay(url);
  relay.onauth = async (draft) => finalizeEvent(draft, secret);
  await inTime(relay.connect(), 'a connection of nostr-tools');
  return relay;
}

/** Runs `act` with a client that is gone afterwards, however it went. */
async function withTalk(url, options, act) {
  const talk = await Talk.start(url, ...options);
  try {
    await act(talk);
    same('the client ends well and has dropped nothing', await talk.end(), { code: 0, dropped: [0, 0] });
  } finally {
    await talk.kill();
  }
}

/** What any relay does for any client. `reader` is a relay's client of nostr-tools, of `other`. */
async function talkThrough(talk, reader, other) {
  await publishing(talk, reader, other);
  await reading(talk, other);
  await listening(talk, reader, other);
}

async function publishing(talk, reader, other) {
  const [, id, isTaken, why] = await talk.sign(1, STRANGE, [['t', STRANGE], ['t', '']]);
  same('an event with strange characters is taken', [isTaken, why], [true, '']);
  const [seen] = await inTime(
    new Promise((resolve) => {
      const seen = [];
      reader.subscribe([{ ids: [id] }], { onevent: (event) => seen.push(event), oneose: () => resolve(seen) });
    }),
    'what nostr-tools finds',
  );
  same('another client reads what was meant', [seen?.content, seen?.pubkey], [STRANGE, talk.key]);
  check('and finds it well signed', seen && verifyEvent(seen), seen);

  const [, , isTakenAgain, again] = await talk.publish(seen);
  same('the same event again is no failure', isTakenAgain, true);
  contains('and is told to be a duplicate', again, 'duplicate:');

  const changed = { ...other.sign(1, 'as it was signed'), content: 'as it was not' };
  const [, , isChangedTaken, whyChanged] = await talk.publish(changed);
  same('an event that was changed is refused', isChangedTaken, false);
  contains('because it is invalid', whyChanged, 'invalid:');
  const badlySigned = { ...other.sign(1, 'signed'), sig: other.sign(1, 'another').sig };
  const [, , isForgedTaken, whyForged] = await talk.publish(badlySigned);
  same('an event with a wrong signature is refused', isForgedTaken, false);
  contains('because it is invalid, too', whyForged, 'invalid:');
}

async function reading(talk, other) {
  const begin = now() - 500;
  const tagged = [1, 2, 3].map((n) => other.sign(1, `note ${n}`, [['t', 'bees']], begin + n));
  for (const event of [...tagged, other.sign(1, 'of wasps', [['t', 'wasps']], begin + 9)]) await talk.publish(event);
  const bees = { kinds: [1], authors: [other.key], '#t': ['bees'] };
  same('what is stored comes newest first', ids(await talk.stored('bees', bees)), ids(tagged.toReversed()));
  const two = await talk.stored('bees', { ...bees, limit: 2 });
  same('a limit is a limit', ids(two), ids([tagged[2], tagged[1]]));
  const between = await talk.stored('bees', { ...bees, since: begin + 2, until: begin + 2 });
  same('times are limits on both sides', ids(between), ids([tagged[1]]));
  const either = await talk.stored('either', { ids: [tagged[0].id] }, { ...bees, since: begin + 3 });
  same('two filters are one or the other', ids(either).toSorted(), ids([tagged[0], tagged[2]]).toSorted());
  const none = await talk.stored('none', { kinds: [1], '#t': ['nobody says this'] });
  same('nothing stored is an end and nothing else', none, []);

  const [old, fresh] = [10, 20].map((at) => other.sign(0, `{"name":"at ${at}"}`, [], begin + at));
  await talk.publish(old);
  await talk.publish(fresh);
  const profile = await talk.stored('profile', { kinds: [0], authors: [other.key] });
  same('of a profile the newest is left', ids(profile), [fresh.id]);
}

async function listening(talk, reader, other) {
  const filter = { kinds: [1], authors: [other.key], since: now() - 5 };
  await talk.stored('live', filter);
  const from = talk.frames.items.length;
  const event = other.sign(1, STRANGE, [['t', STRANGE]]);
  await inTime(reader.publish(event), 'OK for nostr-tools');
  const [, , came] = await talk.heard('EVENT', from, ([, id]) => id === 'live');
  same('what another publishes comes, to the letter', [came.id, came.content], [event.id, STRANGE]);

  talk.say(['CLOSE', 'live']);
  // The relay takes frames in order: when it has answered this one it has seen the other.
  await talk.stored('after', { ids: [event.id] });
  const unheard = other.sign(1, 'for nobody');
  await inTime(reader.publish(unheard), 'OK for nostr-tools');
  same('what comes later is found', ids(await talk.stored('later', { ids: [unheard.id] })), [unheard.id]);
  check('and does not come for what was closed', !ids(talk.events('live')).includes(unheard.id), talk.frames.items);
}

async function counting(talk, other) {
  const [, , { count }] = await talk.ask(['COUNT', 'count', { kinds: [0], authors: [other.key] }], 'COUNT');
  same('a count counts', count, 1);
}

await story('relay of npm that never asks', () => withNpmRelay({ asksAtOnce: false }, async (url) => {
  const other = person();
  const reader = await connected(url, other);
  await withTalk(url, [], (talk) => talkThrough(talk, reader, other));
  reader.close();
}));

await story('relay of npm that asks at once', () => withNpmRelay({ asksAtOnce: true }, async (url) => {
  const other = person();
  const reader = await connected(url, other);
  await withTalk(url, ['--login'], async (talk) => {
    await talkThrough(talk, reader, other);
    const [, sealed] = await talk.sign(4, 'sealed', [['p', talk.key]]);
    const own = await talk.stored('own', { kinds: [4], '#p': [talk.key] });
    same('who is let in reads what is meant for it', ids(own), [sealed]);
    await talk.publish(other.sign(4, 'for others', [['p', other.key]]));
    const foreign = await talk.stored('foreign', { kinds: [4], '#p': [other.key] });
    same('and nothing that is meant for others', foreign, []);
  });
  reader.close();
}));

await story('relay of PyPI that never asks', () => withPypiRelay({ asksWhenNeeded: false }, async (url) => {
  const other = person();
  const reader = await connected(url, other);
  await withTalk(url, [], async (talk) => {
    await talkThrough(talk, reader, other);
    await counting(talk, other);
  });
  reader.close();
}));

await story('relay of PyPI that asks when it must', () => withPypiRelay({ asksWhenNeeded: true }, async (url) => {
  const other = person();
  const reader = await connected(url, other);
  // nostr-tools sends nothing again after its login, so it is made to log in before it is needed.
  await reader.publish(other.sign(1, 'first')).catch(() => {});
  await inTime(reader.auth(reader.onauth), 'the login of nostr-tools');
  await withTalk(url, [], async (talk) => {
    same('a subscription is asked for again after the login', await talk.stored('early', { kinds: [7] }), []);
    await talkThrough(talk, reader, other);
    await counting(talk, other);
  });
  await withTalk(url, [], async (talk) => {
    const [, , isTaken] = await talk.sign(1, 'first of all');
    same('an event is sent again after the login', isTaken, true);
  });
  reader.close();
}));

conclude();
