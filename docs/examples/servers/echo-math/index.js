// A small MCP server over standard input and output: it echoes, adds and multiplies.
"use strict";

const readline = require("node:readline");

const number = { type: "number" };
const pair = { type: "object", properties: { a: number, b: number }, required: ["a", "b"] };
const tools = {
  echo: {
    description: "Say the same text again",
    inputSchema: {
      type: "object",
      properties: { text: { type: "string" } },
      required: ["text"],
    },
    run: ({ text }) => text,
  },
  add: { description: "Add two numbers", inputSchema: pair, run: ({ a, b }) => `${a + b}` },
  multiply: { description: "Multiply two numbers", inputSchema: pair, run: ({ a, b }) => `${a * b}` },
};

const methods = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion: protocolVersion ?? "2024-11-05",
    capabilities: { tools: {} },
    serverInfo: { name: "echo-math", version: "1.0.0" },
  }),
  ping: () => ({}),
  "tools/list": () => ({
    tools: Object.entries(tools).map(([name, { description, inputSchema }]) => ({
      name,
      description,
      inputSchema,
      annotations: { readOnlyHint: true },
    })),
  }),
  "tools/call": ({ name, arguments: given }) => {
    const tool = tools[name];
    if (!tool) return { content: [{ type: "text", text: `Unknown tool: ${name}` }], isError: true };
    return { content: [{ type: "text", text: tool.run(given ?? {}) }] };
  },
};

function answer({ id, method, params }) {
  const serve = methods[method];
  if (serve) return { jsonrpc: "2.0", id, result: serve(params ?? {}) };
  return { jsonrpc: "2.0", id, error: { code: -32601, message: `Method not found: ${method}` } };
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line);
  if (message.id !== undefined) process.stdout.write(`${JSON.stringify(answer(message))}\n`);
});
