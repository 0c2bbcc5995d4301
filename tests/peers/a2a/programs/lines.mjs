// A program that is asked in lines and answers in lines: {"op", "params", "key"} comes in; for each
// event {"event"} goes out, and at the end {"result"} or {"error"}.

import { createInterface } from 'node:readline';

const say = line => process.stdout.write(`${JSON.stringify(line)}\n`);

export function authorized(key) {
  return (input, init = {}) => {
    const headers = new Headers(init.headers);
    headers.set('Authorization', `Bearer ${key}`);
    return fetch(input, { ...init, headers });
  };
}

async function answered(does, client, params) {
  const found = await does(client, params);
  if (typeof found?.[Symbol.asyncIterator] !== 'function') return found;
  for await (const event of found) say({ event });
  return null;
}

function failure(error) {
  const code = error.code ?? error.envelope?.code ?? error.errorResponse?.error?.code;
  return { name: error.name, message: error.message, code: typeof code === 'number' ? code : null };
}

export async function serve(connect, does) {
  const clients = {};
  for await (const line of createInterface({ input: process.stdin })) {
    const { op, params, key } = JSON.parse(line);
    try {
      clients[key] ??= await connect(key);
      say({ result: (await answered(does[op], clients[key], params)) ?? null });
    } catch (error) {
      say({ error: failure(error) });
    }
  }
}
