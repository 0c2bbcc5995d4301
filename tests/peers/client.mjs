// A client made with the official TypeScript SDK: `node client.mjs TASK`, where TASK is the JSON of
// `clients.Task`. It prints the JSON of `clients.Seen`. NODE_PATH says where the SDK is.

import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const { Client, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');
const { StdioClientTransport, getDefaultEnvironment } = require('@modelcontextprotocol/client/stdio');

const MODES = { legacy: 'legacy', modern: { pin: '2026-07-28' }, auto: 'auto' };

const VERBS = {
  'tools/list': (client, params) => client.listTools(params),
  'tools/call': (client, params, options) => client.callTool(params, options),
  'prompts/list': (client, params) => client.listPrompts(params),
  'prompts/get': (client, params) => client.getPrompt(params),
  'resources/list': (client, params) => client.listResources(params),
  'resources/templates/list': (client, params) => client.listResourceTemplates(params),
  'resources/read': (client, params) => client.readResource(params),
  'completion/complete': (client, params) => client.complete(params),
  'logging/setLevel': (client, params) => client.setLoggingLevel(params.level),
};

const ANSWERS = {
  elicitation: ['elicitation/create', task => ({ action: 'accept', content: task.form })],
  roots: ['roots/list', () => ({ roots: [{ uri: 'file:///workspace', name: 'workspace' }] })],
  sampling: [
    'sampling/createMessage',
    () => ({
      role: 'assistant',
      content: { type: 'text', text: 'an answer' },
      model: 'none',
      stopReason: 'endTurn',
    }),
  ],
};

function transport({ url, headers, command, args, env }) {
  return url
    ? new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })
    : new StdioClientTransport({ command, args, env: { ...getDefaultEnvironment(), ...env } });
}

function listening(client, task, seen) {
  for (const name of task.answers) {
    const [method, answer] = ANSWERS[name];
    client.setRequestHandler(method, async ({ params }) => {
      seen.asked.push({ method, params: params ?? {} });
      return answer(task);
    });
  }
  client.setNotificationHandler('notifications/message', ({ method, params }) => {
    seen.told.push({ method, params });
  });
}

async function ask(client, [method, params], seen) {
  const onprogress = params => seen.told.push({ method: 'notifications/progress', params });
  try {
    return { result: await VERBS[method](client, params, { onprogress }) };
  } catch (error) {
    if (typeof error.code !== 'number') throw error;
    return { error: { code: error.code, message: error.message, data: error.data } };
  }
}

const task = JSON.parse(process.argv[2]);
const seen = { revision: '', server: {}, answers: [], asked: [], told: [] };
const client = new Client(
  { name: 'typescript', version: '1' },
  {
    capabilities: Object.fromEntries(task.answers.map(name => [name, {}])),
    versionNegotiation: { mode: MODES[task.era] },
  },
);
listening(client, task, seen);
await client.connect(transport(task.target));
seen.revision = client.getNegotiatedProtocolVersion();
seen.server = client.getServerVersion() ?? {};
for (const request of task.requests) seen.answers.push(await ask(client, request, seen));
await client.close();
process.stdout.write(JSON.stringify(seen));
