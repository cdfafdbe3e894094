// The official MCP client, as a second opinion on what a server lists and answers.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

/** Runs `act` with an MCP client on the server that an entry of `mcpServers` names. */
export async function withServer(entry, act) {
  const client = new Client({ name: 'waxlog-interop', version: '1.0.0' });
  const env = Object.fromEntries(entry.env.map(({ name, value }) => [name, value]));
  await client.connect(new StdioClientTransport({ ...entry, env, stderr: 'ignore' }));
  try {
    return await act(client);
  } finally {
    await client.close();
  }
}

/** All tools of a server. */
export async function toolsOf(entry) {
  return withServer(entry, async (client) => (await client.listTools()).tools);
}
