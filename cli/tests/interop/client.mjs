// The agent under the official ACP SDK's client: everything that a client does with sessions, and a kill.
import { Agent, CLIENT } from './lib/agent.mjs';
import { calls, result, says, unpaired } from './lib/model.mjs';
import { check, conclude, contains, same, story } from './lib/report.mjs';
import { violation } from './lib/schema.mjs';
import { onStage } from './lib/stage.mjs';

// One step: a server that tells its progress to nobody would end by itself.
const LONG = { duration: 60, steps: 1 };
const slow = (id) => [id, 'everything__trigger-long-running-operation', LONG];
const echo = (id, message) => [id, 'everything__echo', { message }];

/** The texts that a list of updates tells in chunks of one kind. */
function chunks(updates, kind) {
  const ofKind = updates.filter(({ update }) => update.sessionUpdate === kind);
  return ofKind.map(({ update }) => update.content.text);
}

/** Runs `act` with an agent that is gone afterwards, however it went. */
async function withAgent(stage, act) {
  const agent = Agent.start(stage);
  try {
    const hello = await agent.initialize();
    await act(agent, hello);
    same('every line fits the public schema', agent.faults(), []);
  } finally {
    await agent.kill();
  }
}

await story('schema', () => {
  // If these pass as right, the other checks against the schema say nothing.
  const update = (inner) => ({ jsonrpc: '2.0', method: 'session/update', params: { sessionId: 's', update: inner } });
  check('takes a known update', !violation(update({ sessionUpdate: 'session_info_update' })));
  check('refuses an unknown update', violation(update({ sessionUpdate: 'keepalive' })));
  check('refuses a wrong status', violation(update({ sessionUpdate: 'tool_call_update', toolCallId: 'c', status: 'done' })));
  check('refuses an answer without its fields', violation({ jsonrpc: '2.0', id: 1, result: {} }, 'session/new'));
  check('refuses an unknown method', violation({ jsonrpc: '2.0', method: 'session/other', params: {} }));
});

await story('session of the SDK', () => onStage((stage) => withAgent(stage, async (agent, hello) => {
  same('initialize settles on version 1', hello.protocolVersion, 1);
  same('and names the agent', hello.agentInfo.name, 'waxlog');
  check('sessions can be loaded', hello.agentCapabilities.loadSession === true, hello);
  const { list, resume, close } = hello.agentCapabilities.sessionCapabilities;
  same('listed, resumed and closed', [list, resume, close], [{}, {}, {}]);

  const opened = await agent.newSession({ cwd: stage.work, mcpServers: [stage.everything()] });
  const session = opened.sessionId;
  const modelOption = (options) => options.find(({ category }) => category === 'model');
  same('the model is a config option', modelOption(opened.configOptions).currentValue, 'scripted');

  stage.model.script(calls(echo('a', 'first'), echo('b', 'second')), says('Both said.'));
  same('a prompt with tools ends', (await agent.prompt(session, 'Say two things.')).stopReason, 'end_turn');
  same('the text is told', chunks(agent.updates.items, 'agent_message_chunk'), ['Both said.']);
  same('a call is told in three steps', agent.statuses('b'), ['pending', 'in_progress', 'completed']);
  same('its result reaches the model', result(stage.model.last, 'b'), 'Echo: second');

  await refusals(agent, session);
  await blocks(stage, agent, session, hello.agentCapabilities.promptCapabilities);
  await cancelMidTool(stage, agent, session);

  const changed = await agent.ask('session/set_config_option', {
    sessionId: session, configId: modelOption(opened.configOptions).id, value: 'another',
  });
  same('the answer to a change holds all options', modelOption(changed.configOptions).currentValue, 'another');
  stage.model.script(says('Changed.'));
  await agent.prompt(session, 'Who are you?');
  same('the next request asks the new model', stage.model.last.model, 'another');

  const listed = await agent.ask('session/list', { cwd: stage.work });
  same('the session is listed', listed.sessions.map(({ sessionId, cwd }) => [sessionId, cwd]), [[session, stage.work]]);
  contains('with the start of its first prompt', listed.sessions[0].title, 'Say two things.');
  check('and a time', !Number.isNaN(Date.parse(listed.sessions[0].updatedAt)), listed.sessions[0]);
  same('a list of another folder is empty', (await agent.ask('session/list', { cwd: '/elsewhere' })).sessions, []);

  same('close answers with an empty object', await agent.ask('session/close', { sessionId: session }), {});
  await stage.noServerRuns('and ends its server');
  const refused = await agent.prompt(session, 'Still there?').catch((error) => error);
  same('a closed session takes no prompt', refused.code, -32002);
  same('the agent ends with code 0', await agent.close(), 0);
  await stage.nothingRuns('nothing is left running');
  await stage.logsHold();
})));

async function refusals(agent, session) {
  const cause = (name, params) => agent.ask(name, params).then(() => 'none', (error) => error.code);
  same('an unknown method is -32601', await cause('session/unheard_of', {}), -32601);
  same('a wrong option is -32602', await cause('session/set_config_option', {
    sessionId: session, configId: 'colour', value: 'amber',
  }), -32602);
}

/** A block works if `initialize` says that it does, and is refused if not. */
async function blocks(stage, agent, session, offered) {
  const data = Buffer.from('bytes of a block').toString('base64');
  const text = 'text of a block';
  const of = {
    image: [{ type: 'image', data, mimeType: 'image/png' }, data],
    audio: [{ type: 'audio', data, mimeType: 'audio/wav' }, data],
    embeddedContext: [{ type: 'resource', resource: { uri: 'file:///hive.txt', text } }, text],
  };
  for (const [capability, [block, needle]] of Object.entries(of)) {
    const prompt = [{ type: 'text', text: 'Look at this.' }, block];
    if (offered[capability]) {
      stage.model.script(says('Seen.'));
      await agent.ask('session/prompt', { sessionId: session, prompt });
      contains(`${capability} is offered and reaches the model`, JSON.stringify(stage.model.last), needle);
    } else {
      const error = await agent.ask('session/prompt', { sessionId: session, prompt }).catch((refusal) => refusal);
      same(`${capability} is not offered and refused`, error.code, -32602);
    }
  }
}

async function cancelMidTool(stage, agent, session) {
  stage.model.script(calls(echo('quick', 'done'), slow('stuck')));
  const turn = agent.prompt(session, 'Take your time.');
  await agent.status('stuck', 'in_progress');
  await agent.status('quick', 'completed');
  await agent.cancel(session);
  same('a cancel in mid tool ends the turn', (await turn).stopReason, 'cancelled');
  same('the call is told as failed', agent.told('stuck').status, 'failed');
  stage.model.script(says('Going on.'));
  same('the next prompt works', (await agent.prompt(session, 'Go on.')).stopReason, 'end_turn');
  same('every call has a result', unpaired(stage.model.last), []);
  same('the finished one its own', result(stage.model.last, 'quick'), 'Echo: done');
  contains('the stopped one says so', result(stage.model.last, 'stuck'), 'cancelled');
}

await story('load after SIGKILL', () => onStage(async (stage) => {
  const server = stage.everything();
  let session;
  await withAgent(stage, async (agent) => {
    ({ sessionId: session } = await agent.newSession({ cwd: stage.work, mcpServers: [server] }));
    stage.model.script(calls(echo('one', 'kept')), says('I keep it.'));
    await agent.prompt(session, 'Keep this.');
    stage.model.script(calls(echo('two', 'also kept'), slow('lost')));
    const lost = agent.prompt(session, 'And now for long.').catch((error) => error);
    await agent.status('lost', 'in_progress');
    await agent.status('two', 'completed');
    await agent.kill();
    check('the prompt gets no answer', (await lost) instanceof Error);
  });
  const asked = stage.model.requests.items.length;
  check('its server is left, busy', stage.servers().length > 0);

  await withAgent(stage, async (agent, hello) => {
    same('a new agent is there', [hello.agentInfo.name, hello.protocolVersion], ['waxlog', 1]);
    await stage.noServerRuns('it has ended what the killed one left running');
    const listed = await agent.ask('session/list', {});
    same('it lists the session', listed.sessions.map(({ sessionId }) => sessionId), [session]);

    const loaded = await agent.ask('session/load', { sessionId: session, cwd: stage.work, mcpServers: [server] });
    check('load answers with the options', Array.isArray(loaded.configOptions), loaded);
    checkHistory(agent, session);
    same('telling it asked no model', stage.model.requests.items.length, asked);

    stage.model.script(calls(echo('three', 'new')), says('Here again.'));
    same('a prompt goes on', (await agent.prompt(session, 'Where were we?')).stopReason, 'end_turn');
    checkContext(stage.model.last);
    same('its tools work', agent.statuses('three'), ['pending', 'in_progress', 'completed']);

    same('the agent ends with code 0', await agent.close(), 0);
    await stage.nothingRuns('nothing is left running');
    await stage.logsHold();
  });
}));

/** The history came as updates, whole and in order, before the answer to `session/load`. */
function checkHistory(agent, session) {
  const lines = agent.lines.items;
  const answer = lines.findIndex(({ result: found }) => found && 'configOptions' in found);
  const isUpdate = ({ method }) => method === 'session/update';
  check('all of the history comes before the answer', !lines.slice(answer).some(isUpdate), lines.slice(answer));
  const updates = agent.updates.items;
  check('the SDK hands out every update', updates.length === lines.filter(isUpdate).length && updates.length > 0, lines);
  same('all of them are of the session', [...new Set(updates.map(({ sessionId }) => sessionId))], [session]);
  same('what the user said', chunks(updates, 'user_message_chunk'), ['Keep this.', 'And now for long.']);
  same('what the model said', chunks(updates, 'agent_message_chunk'), ['I keep it.']);
  same('the calls, with how they ended', ['one', 'two', 'lost'].map((id) => agent.told(id)?.status),
    ['completed', 'completed', 'failed']);
  const order = updates.map(({ update }) => update.toolCallId ?? update.content?.text).filter(Boolean);
  same('in their order', order, ['Keep this.', 'one', 'I keep it.', 'And now for long.', 'two', 'lost']);
}

/** The model sees what was before the kill, and every call has a result. */
function checkContext(request) {
  const said = request.messages.filter(({ role }) => role === 'user').map(({ content }) => content);
  same('the model is sent the earlier prompts', said, ['Keep this.', 'And now for long.', 'Where were we?']);
  check('its own earlier words', request.messages.some(({ content }) => content === 'I keep it.'), request.messages);
  same('and results of before the kill', ['one', 'two', 'three'].map((id) => result(request, id)),
    ['Echo: kept', 'Echo: also kept', 'Echo: new']);
  same('every call has a result', unpaired(request), []);
  contains('the lost one says why', result(request, 'lost'), 'interrupted');
}

conclude();
