// The agent with the official MCP servers, in real turns.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Agent } from './lib/agent.mjs';
import { calls, images, result, results, says, unpaired } from './lib/model.mjs';
import { toolsOf, withServer } from './lib/reference.mjs';
import { check, conclude, contains, same, story } from './lib/report.mjs';
import { onStage } from './lib/stage.mjs';

/** Opens a session with the servers, runs `act` in it, and checks what holds after every session. */
async function inSession(stage, servers, act) {
  const agent = Agent.start(stage);
  try {
    await agent.initialize();
    const { sessionId } = await agent.newSession({ cwd: stage.work, mcpServers: servers });
    await act(agent, sessionId);
    same('the agent ends with code 0 at the end of its stdin', await agent.close(), 0);
    await stage.nothingRuns('nothing is left running');
    same('every line fits the public schema', agent.faults(), []);
    await stage.logsHold();
  } finally {
    await agent.kill();
  }
}

/** Checks that the model was offered exactly the tools that the servers list, as they describe them. */
async function checkTools(request, servers) {
  const offered = request.tools.map((tool) => tool.function);
  const listed = [];
  for (const server of servers) {
    for (const tool of await toolsOf(server)) listed.push({ ...tool, name: `${server.name}__${tool.name}` });
  }
  const names = (tools) => tools.map((tool) => tool.name).sort();
  same('the model is offered every tool that the servers list', names(offered), names(listed));
  const changed = listed.filter((tool) => {
    const found = offered.find(({ name }) => name === tool.name);
    return found?.description !== tool.description || !sameSchema(found?.parameters, tool.inputSchema);
  });
  same('with the descriptions and schemas of the servers', changed.map((tool) => tool.name), []);
}

/** Key order is free; `$schema` names a dialect and says nothing about arguments. */
function sameSchema(a, b) {
  const plain = (value) => JSON.stringify(value, (key, inner) => {
    if (inner === null || typeof inner !== 'object' || Array.isArray(inner)) return inner;
    const entries = Object.entries(inner).filter(([name]) => name !== '$schema');
    return Object.fromEntries(entries.sort(([x], [y]) => (x < y ? -1 : 1)));
  });
  return a !== undefined && plain(a) === plain(b);
}

function checkOrder(request, ids) {
  same('results stand in call order', results(request).map(({ id }) => id).slice(-ids.length), ids);
  same('every call has its result', unpaired(request), []);
}

const dataUrl = ({ mimeType, data }) => `data:${mimeType};base64,${data}`;

await story('server-everything', () => onStage(async (stage) => {
  const server = stage.everything();
  const image = await withServer(server, async (client) => {
    const { content } = await client.callTool({ name: 'get-tiny-image' });
    return content.find(({ type }) => type === 'image');
  });
  await inSession(stage, [server], async (agent, session) => {
    // The slow call stands first, so that results in call order are no accident.
    stage.model.script(
      calls(
        ['slow', 'everything__trigger-long-running-operation', { duration: 1, steps: 5 }],
        ['echo', 'everything__echo', { message: 'wax and honey' }],
        ['sum', 'everything__get-sum', { a: 40, b: 2 }],
        ['image', 'everything__get-tiny-image', {}],
      ),
      calls(
        ['noted', 'everything__get-annotated-message', { messageType: 'error', includeImage: true }],
        ['data', 'everything__get-structured-content', { location: 'Chicago' }],
        ['links', 'everything__get-resource-links', { count: 2 }],
        ['bad', 'everything__get-sum', { a: 'forty', b: 2 }],
        ['nobody', 'everything__no-such-tool', {}],
      ),
      says('All tried.'),
    );
    same('the turn ends', (await agent.prompt(session, 'Try the tools.')).stopReason, 'end_turn');
    const [first, second, third] = stage.model.requests.items;
    await checkTools(first, [server]);

    checkOrder(second, ['slow', 'echo', 'sum', 'image']);
    same('echo', result(second, 'echo'), 'Echo: wax and honey');
    same('sum', result(second, 'sum'), 'The sum of 40 and 2 is 42.');
    contains('the long operation, in spite of its progress lines', result(second, 'slow'), 'completed');
    contains('the text beside the image', result(second, 'image'), 'image you requested');
    same('the image reaches the model, byte for byte', images(second), [dataUrl(image)]);
    const order = agent.lines.items.map(({ params }) => params?.update?.toolCallId && params.update);
    const ended = order.filter((update) => update?.status === 'completed').map((update) => update.toolCallId);
    check('the quick calls do not wait for the slow one', ended.indexOf('echo') < ended.indexOf('slow'), ended);

    checkOrder(third, ['noted', 'data', 'links', 'bad', 'nobody']);
    contains('an annotated text', result(third, 'noted'), 'Error: Operation failed');
    same('an annotated image', images(third).length, 2);
    contains('a structured result, in its text form', result(third, 'data'), '"humidity":82');
    contains('resource links', result(third, 'links'), '[resource: demo://resource/');
    contains('arguments that the server refuses', result(third, 'bad'), 'expected number');
    contains('a tool that is not there', result(third, 'nobody'), 'unknown tool');

    same('a call is told in three steps', agent.statuses('sum'), ['pending', 'in_progress', 'completed']);
    same('its text is told', agent.told('sum').content[0].content.text, 'The sum of 40 and 2 is 42.');
    same('an error of a tool is told as such', agent.told('bad').rawOutput, { isError: true });
    same('an unknown tool is told as failed', agent.told('nobody').status, 'failed');
  });
}));

await story('server-filesystem', () => onStage(async (stage) => {
  const server = stage.filesystem();
  const at = (name) => path.join(stage.work, name);
  const outside = path.join(stage.folder, 'secret.txt');
  writeFileSync(outside, 'not for the model');
  await inSession(stage, [server], async (agent, session) => {
    const text = 'one\ntwo "quoted"\nthree \u{1F41D}\n';
    stage.model.script(
      calls(['write', 'fs__write_file', { path: at('hive.txt'), content: text }]),
      calls(
        ['read', 'fs__read_text_file', { path: at('hive.txt') }],
        ['list', 'fs__list_directory', { path: stage.work }],
        ['outside', 'fs__read_text_file', { path: outside }],
        ['climb', 'fs__read_text_file', { path: `${stage.work}/../secret.txt` }],
      ),
      calls(['edit', 'fs__edit_file', { path: at('hive.txt'), edits: [{ oldText: 'one', newText: 'uno' }] }]),
      says('Written and read.'),
    );
    same('the turn ends', (await agent.prompt(session, 'Write a file.')).stopReason, 'end_turn');
    const [first, , third, fourth] = stage.model.requests.items;
    await checkTools(first, [server]);
    checkOrder(third, ['write', 'read', 'list', 'outside', 'climb']);
    same('what was read is what was written', result(third, 'read'), text);
    contains('the folder is listed', result(third, 'list'), '[FILE] hive.txt');
    contains('a path outside is an error', result(third, 'outside'), 'Access denied');
    contains('so is one that climbs out', result(third, 'climb'), 'Access denied');
    same('and is told as an error', agent.told('outside').rawOutput, { isError: true });
    check('the file outside stays secret', !JSON.stringify(fourth).includes('not for the model'));
    contains('an edit gives its diff', result(fourth, 'edit'), '+uno');
    same('the file has it', readFileSync(at('hive.txt'), 'utf8'), text.replace('one', 'uno'));
  });
}));

await story('mcp-server-time', () => onStage(async (stage) => {
  const server = stage.time();
  await inSession(stage, [server], async (agent, session) => {
    const day = { source_timezone: 'Asia/Tokyo', time: '09:30', target_timezone: 'Asia/Kolkata' };
    stage.model.script(
      calls(
        ['now', 'time__get_current_time', { timezone: 'UTC' }],
        ['convert', 'time__convert_time', day],
        ['nowhere', 'time__get_current_time', { timezone: 'Hive/Comb' }],
      ),
      says('It is late.'),
    );
    same('the turn ends', (await agent.prompt(session, 'What time is it?')).stopReason, 'end_turn');
    const [first, second] = stage.model.requests.items;
    await checkTools(first, [server]);
    checkOrder(second, ['now', 'convert', 'nowhere']);
    same('the current time', JSON.parse(result(second, 'now')).timezone, 'UTC');
    contains('a converted time', JSON.parse(result(second, 'convert')).target.datetime, 'T06:00:00+05:30');
    contains('a wrong time zone', result(second, 'nowhere'), 'Hive/Comb');
    same('is told as an error', agent.told('nowhere').rawOutput, { isError: true });
  });
}));

await story('three servers at once', () => onStage(async (stage) => {
  const servers = [stage.everything(), stage.filesystem(), stage.time()];
  await inSession(stage, servers, async (agent, session) => {
    stage.model.script(
      calls(
        ['slow', 'everything__trigger-long-running-operation', { duration: 0.5, steps: 2 }],
        ['now', 'time__get_current_time', { timezone: 'UTC' }],
        ['list', 'fs__list_allowed_directories', {}],
        ['echo', 'everything__echo', { message: 'last' }],
      ),
      says('Done.'),
    );
    same('the turn ends', (await agent.prompt(session, 'Ask all of them.')).stopReason, 'end_turn');
    const [first, second] = stage.model.requests.items;
    await checkTools(first, servers);
    checkOrder(second, ['slow', 'now', 'list', 'echo']);
    contains('a server works in the folder that it was given', result(second, 'list'), stage.work);
  });
}));

conclude();
