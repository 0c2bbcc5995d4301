// The official client for Node of A2A 1.0: `node node.mjs URL BINDING`, then lines (lines.mjs) whose
// params are requests of 1.0 as they are written in JSON. NODE_PATH says where the SDK is.

import { createRequire } from 'node:module';
import { authorized, serve } from './lines.mjs';

const require = createRequire(import.meta.url);
const sdk = require('@a2a-js/sdk');
const client = require('@a2a-js/sdk/client');

const [url, binding] = process.argv.slice(2);
const Transport = { JSONRPC: client.JsonRpcTransportFactory, 'HTTP+JSON': client.RestTransportFactory }[binding];

function connect(key) {
  const fetchImpl = authorized(key);
  return new client.ClientFactory({
    transports: [new Transport({ fetchImpl })],
    cardResolver: new client.DefaultAgentCardResolver({ fetchImpl }),
  }).createFromUrl(url);
}

const one = (method, Asked, Told) => async (client, params) =>
  Told.toJSON(await client[method](Asked.fromJSON(params)));

const many = (method, Asked) =>
  async function* (client, params) {
    for await (const event of client[method](Asked.fromJSON(params))) yield sdk.StreamResponse.toJSON(event);
  };

async function send(client, params) {
  const found = await client.sendMessage(sdk.SendMessageRequest.fromJSON(params));
  return 'status' in found ? { task: sdk.Task.toJSON(found) } : { message: sdk.Message.toJSON(found) };
}

await serve(connect, {
  card: async client => sdk.AgentCard.toJSON(client.agentCard),
  extended: async client => sdk.AgentCard.toJSON(await client.getAgentCard()),
  send,
  stream: many('sendMessageStream', sdk.SendMessageRequest),
  get: one('getTask', sdk.GetTaskRequest, sdk.Task),
  list: one('listTasks', sdk.ListTasksRequest, sdk.ListTasksResponse),
  cancel: one('cancelTask', sdk.CancelTaskRequest, sdk.Task),
  subscribe: many('resubscribeTask', sdk.SubscribeToTaskRequest),
  push_set: one('createTaskPushNotificationConfig', sdk.TaskPushNotificationConfig, sdk.TaskPushNotificationConfig),
  push_get: one('getTaskPushNotificationConfig', sdk.GetTaskPushNotificationConfigRequest, sdk.TaskPushNotificationConfig),
  push_list: one('listTaskPushNotificationConfig', sdk.ListTaskPushNotificationConfigsRequest, sdk.ListTaskPushNotificationConfigsResponse),
  push_delete: (client, params) => client.deleteTaskPushNotificationConfig(sdk.DeleteTaskPushNotificationConfigRequest.fromJSON(params)),
});
