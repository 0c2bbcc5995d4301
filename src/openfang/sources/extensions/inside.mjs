// What runs inside of an extension's process of Node: it loads the extension's file, and serves its
// calls. Lines of JSON on standard input and output; what the code prints goes where its errors go.

import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const LARGEST = 10_000_000;
const LONGEST_REASON = 2000;
const LONGEST_TRACE = 20_000;
const LINGERS = 250;
const DOT = Buffer.from("\n");

const read = process.stdin;
process.stdout.write = process.stderr.write.bind(process.stderr);

function write(line) {
  let rest = Buffer.concat([DOT, Buffer.from(line), DOT]);
  while (rest.length) {
    try {
      rest = rest.subarray(fs.writeSync(1, rest));
    } catch (error) {
      if (error.code !== "EAGAIN") process.exit(0);
    }
  }
}

function send(say, id, fields = {}) {
  const line = JSON.stringify({ id, say, ...fields });
  if (line.length > LARGEST) throw new RangeError(`${say}: more than ${LARGEST} bytes`);
  write(line);
}

function described(error) {
  const known = error instanceof Error;
  return {
    type: known ? error.name : typeof error,
    message: String(known ? error.message : error).slice(0, LONGEST_REASON),
    traceback: String((known && error.stack) || "").slice(-LONGEST_TRACE),
  };
}

class CallError extends Error {
  constructor(answer) {
    super(answer.way_out ? `${answer.reason} Way out: ${answer.way_out}.` : answer.reason);
    this.reason = answer.reason;
    this.wayOut = answer.way_out ?? "";
    this.code = answer.code ?? "";
  }
}

class Refused extends CallError {
  name = "Refused";
}

class Failed extends CallError {
  name = "Failed";
}

class Stopped extends Error {
  name = "Stopped";
}

const runs = new Map();
let calls = 0;

class Run {
  constructor(id) {
    this.id = id;
    this.waiting = new Map();
    this.ended = new AbortController();
  }

  send(say, fields) {
    if (this.ended.signal.aborted) throw new Stopped("Nobody waits for this call any more");
    send(say, this.id, fields);
  }

  request(say, fields) {
    const call = ++calls;
    return new Promise((resolve, reject) => {
      this.waiting.set(call, { resolve, reject });
      try {
        this.send(say, { call, ...fields });
      } catch (error) {
        this.waiting.delete(call);
        reject(error);
      }
    });
  }

  answered(message) {
    const found = this.waiting.get(message.call);
    if (!found) return;
    this.waiting.delete(message.call);
    if (!("reason" in message)) found.resolve(message);
    else found.reject(message.refused ? new Refused(message) : new Failed(message));
  }

  stop() {
    this.ended.abort();
    for (const { reject } of this.waiting.values()) reject(new Stopped("The call was cancelled"));
    this.waiting.clear();
    setTimeout(() => runs.has(this.id) && send("lingers", this.id), LINGERS);
  }
}

class Result {
  constructor(content, structured = null, isError = false) {
    Object.assign(this, { content, structured, isError });
  }

  get text() {
    return this.content.filter((one) => one.type === "text").map((one) => one.text).join("\n");
  }
}

class Context {
  #run;

  constructor(run, config) {
    this.#run = run;
    this.config = config;
    this.signal = run.ended.signal;
    this.memory = {
      get: async (key, fallback = null) => {
        const found = await this.call("memory_recall", { key });
        if (found.isError) return fallback;
        return found.structured && "value" in found.structured ? found.structured.value : found.text;
      },
      set: async (key, value) => {
        const kept = await this.call("memory_store", { key, value });
        if (kept.isError) throw new Failed({ reason: kept.text });
      },
    };
  }

  async call(tool, args = {}) {
    const found = await this.#run.request("call", { tool, arguments: args });
    return new Result(found.content, found.structured, found.is_error);
  }

  log(text) {
    this.#run.send("log", { text: String(text) });
  }

  progress(done, total = null, message = "") {
    this.#run.send("progress", { done, total, message: String(message) });
  }

  artifact(name, content, mime = "") {
    this.#run.send("artifact", { name: String(name), parts: [part(name, content, mime)] });
  }

  result(content, structured = null, isError = false) {
    return new Result(content, structured, isError);
  }
}

Object.assign(Context.prototype, { Refused, Failed });

function part(name, content, mime) {
  if (typeof content === "string") return { type: "text", text: content, ...(mime && { mime_type: mime }) };
  if (!(content instanceof Uint8Array)) return { type: "data", data: content };
  const data = Buffer.from(content).toString("base64");
  return { type: "file", name: String(name), mime_type: mime || "application/octet-stream", data };
}

function said(answer) {
  if (answer === undefined || answer === null) return { text: null };
  if (typeof answer === "string") return { text: answer };
  if (answer instanceof Result) {
    const { content, structured, isError } = answer;
    return { text: null, content, structured, is_error: isError };
  }
  const text = JSON.stringify(answer);
  const structured = typeof answer === "object" && !Array.isArray(answer) ? { structured: answer } : {};
  return { text, ...structured };
}

function cpu() {
  const used = process.cpuUsage();
  return (used.user + used.system) / 1e6;
}

async function serve(run, work) {
  let say = "result";
  let fields;
  try {
    fields = { ...said(await work()), cpu: cpu() };
    if (JSON.stringify(fields).length > LARGEST / 2) throw new RangeError("The answer is too long");
  } catch (error) {
    say = run.ended.signal.aborted ? "ended" : "error";
    fields = say === "ended" ? {} : described(error);
  }
  runs.delete(run.id);
  send(say, run.id, fields);
}

let tools;
let config;

function heard(message) {
  const run = runs.get(message.id);
  if (message.do === "run") {
    const begun = new Run(message.id);
    runs.set(begun.id, begun);
    const context = new Context(begun, config);
    serve(begun, async () => tools[message.tool](message.arguments, context));
  } else if (message.do === "cancel") run?.stop();
  else if (message.do === "answer") run?.answered(message);
}

function found(module, wanted) {
  const all = { ...module, ...(typeof module.default === "object" ? module.default : {}) };
  const names = Object.keys(module.default ?? {});
  const double = wanted.filter((one) => one !== "default" && names.includes(one) && one in module && module[one] !== module.default[one]);
  if (double.length) throw new TypeError(`there are two functions for ${double.join(", ")}`);
  const missing = wanted.filter((one) => typeof all[one] !== "function");
  if (missing.length) throw new TypeError(`there is no function for ${missing.join(", ")}`);
  return Object.fromEntries(wanted.map((one) => [one, all[one]]));
}

async function begin(message) {
  try {
    const file = process.argv[2];
    tools = found(await import(pathToFileURL(path.resolve(file)).href), message.tools);
    config = Object.freeze(message.config);
  } catch (error) {
    send("broken", 0, described(error));
    process.exit(1);
  }
  send("ready", 0);
}

// What nobody waited for ends that, and not the others' calls.
process.on("unhandledRejection", (error) => console.error("Nobody waited for:", error));

let rest = Buffer.alloc(0);
read.on("data", (data) => {
  rest = Buffer.concat([rest, data]);
  let end;
  while ((end = rest.indexOf(10)) >= 0) {
    const line = rest.subarray(0, end);
    rest = rest.subarray(end + 1);
    if (!line.length) continue;
    const message = JSON.parse(line);
    if (message.do === "begin") begin(message);
    else heard(message);
  }
});
read.on("end", () => process.exit(0));
