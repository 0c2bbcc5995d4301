// The official client for Node of A2A 0.3: it does what `node.mjs` does, with params of 0.3.

import { createRequire } from 'node:module';
import { authorized, serve } from './lines.mjs';

const require = createRequire(import.meta.url);
const client = require('@a2a-js/sdk-0.3/client');

const [url, binding] = process.argv.slice(2);
const Transport = { JSONRPC: client.JsonRpcTransportFactory, 'HTTP+JSON': client.RestTransportFactory }[binding];

function connect(key) {
  const fetchImpl = authorized(key);
  return new client.ClientFactory({
    transports: [new Transport({ fetchImpl })],
    cardResolver: new client.DefaultAgentCardResolver({ fetchImpl }),
  }).createFromUrl(url);
}

const to = method => (client, params) => client[method](params);

await serve(connect, {
  card: async client => client.agentCard,
  extended: client => client.getAgentCard(),
  send: to('sendMessage'),
  stream: to('sendMessageStream'),
  get: to('getTask'),
  cancel: to('cancelTask'),
  subscribe: to('resubscribeTask'),
  push_set: to('setTaskPushNotificationConfig'),
  push_get: to('getTaskPushNotificationConfig'),
  push_list: to('listTaskPushNotificationConfig'),
  push_delete: to('deleteTaskPushNotificationConfig'),
});
