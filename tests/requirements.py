"""Every line of the contract, what of it is still open, and which tests come through an edge.

A test names the requirements it shows with `@pytest.mark.requirement("C1.3")`. Every requirement
but those that are to come `later` has a test that meets the software as its peers do: over a
socket, a pipe or the command line. `test_requirements.py` holds both to it. `open` says what is
missing of a line; what is there of it is due like any other.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Requirement:
    """One numbered line of the contract."""

    id: str
    text: str
    open: str = ""
    later: bool = False


# Where tests come through an edge: of a daemon, of the command, or of a node behind a socket.
_AT_AN_EDGE = (
    "tests/a2a_spec/",
    "tests/app/offering/test_over_http.py",
    "tests/app/test_scopes.py",
    "tests/cli/",
    "tests/conformance/test_server.py",
    "tests/contract/",
    "tests/edges/",
    "tests/faults/",
    "tests/peers/a2a/",
    "tests/peers/rings/",
    "tests/peers/test_pairings.py",
    "tests/peers/test_whole.py",
    "tests/sources/mcp/test_byte_for_byte.py",
    "tests/test_pages.py",
    "tests/test_tour.py",
)
# What lies there and takes a part by itself.
_BEHIND_IT = (
    "tests/a2a_spec/test_suite.py",
    "tests/cli/test_options.py",
    "tests/edges/a2a/test_cards.py",
    "tests/edges/a2a/test_convert.py",
    "tests/edges/a2a/test_modern_rules.py",
    "tests/edges/a2a/test_notifying.py",
    "tests/edges/api/test_staying.py",
    "tests/edges/mcp/test_client.py",
    "tests/edges/mcp/test_events.py",
    "tests/edges/mcp/test_lines.py",
    "tests/edges/mcp/test_parked.py",
    "tests/edges/mcp/test_refusals.py",
)


def through_an_edge(test: str) -> bool:
    """Whether the test of this id meets the software as its peers do."""
    return test.startswith(_AT_AN_EDGE) and not test.startswith(_BEHIND_IT)


REQUIREMENTS = (
    Requirement(
        "C1.1",
        "Canonical tool ids, used in the audit log, in policy and in configuration: "
        "`builtin:{tool}`, `mcp:{server}:{tool}`, `ext:{extension}:{capability}`, "
        "`agent:{name}`, `a2a:{peer}`.",
    ),
    Requirement(
        "C1.2",
        "Wire names, shown to models and to MCP clients, `^[a-zA-Z0-9_-]{1,64}$`: a "
        "built-in's own name; `mcp_{server}_{tool}`; `openfang_agent_{name}`; an "
        "extension tool's declared name, or `ext_{extension}_{capability}` where that is "
        "taken; `a2a_{peer}`. Lower case; `-` and every other foreign character becomes "
        "`_`.",
    ),
    Requirement(
        "C1.3",
        "Wire names come from a table and are never parsed back. Built-ins and agents "
        "never change theirs; the first claimant of a name keeps it, a later one (or a "
        "name over 64) gets a suffix `_` + 6 hex digits of sha256(canonical id). The "
        "assignment is stored and survives restarts and reordering. `a`+`b_c`, `a-b`+`c` "
        "and `a_b`+`C` all stay callable; a warning names both.",
    ),
    Requirement(
        "C1.4",
        "Helpers kept from the seed: `format_mcp_tool_name(server, tool)` (pure), "
        "`is_mcp_tool(name)`, `extract_mcp_server(name)` (answers from the table).",
    ),
    Requirement(
        "C1.5",
        "A call may name a tool by wire name, by canonical id, or, for an agent's "
        "exported plugin tools, by `plugin:tool` (`fs:read_file`).",
    ),
    Requirement(
        "C1.6",
        "Calls that are not tools: `mcp:{server}:resources/read`, `...:prompts/get`, "
        "`...:completion/complete` (target in the arguments); towards the client "
        "`client:{key}:sampling/createMessage`, `...:elicitation/create`, "
        "`...:roots/list`, whose caller is `mcp:{server}`.",
    ),
    Requirement(
        "C2.1",
        "`$OPENFANG_HOME/config.toml` (default `~/.openfang`). Root keys: `api_key` "
        "(becomes a named key `config` without admin; unset opens nothing), `api_listen` "
        "(`127.0.0.1:50051`), `public_url`, `log_level`, `include`. `[[mcp_servers]]`: "
        '`name`, `transport` (`type = "stdio"` + `command`, `args`; `type = "sse"` or'
        ' `"http"` + `url`, `headers`), `timeout_secs` (30, > 0), `env` (names to pass '
        "on, or a table of values; `${NAME}` expands); from AgentOS `enabled` (true), "
        "`allow_tools` (empty = all), `deny_side_effect_tags`, `trust`; ours "
        '`allow_private`, `lazy`, `sandbox` ("auto"), `network`, `fs_read`, `fs_write`,'
        " `max_concurrency` (10). An entry written by hand is accepted by being there; "
        "what arrives by import, command, API or install waits with `enabled = false` "
        "until accepted.",
    ),
    Requirement(
        "C2.2",
        "`~/.agentos/mcp_servers.yaml` (`id`, `enabled`, `transport: stdio`, `command: "
        "[..]`, `allow_tools`, `deny_side_effect_tags`, `timeout_ms` (30000), `env` map) "
        'is read in place by `include = ["~/.agentos/mcp_servers.yaml"]`, with the '
        "seed's validation rules; relative paths in it resolve from its folder.",
    ),
    Requirement(
        "C2.3",
        "`claude_desktop_config.json`, `.cursor/mcp.json`, `.vscode/mcp.json` and their "
        "like import by `openfang import`; entries that start `openfang` itself are "
        "skipped.",
    ),
    Requirement(
        "C2.4",
        "Agents: `agents/{name}/agent.toml` (OpenFang manifest) or `agent.json` "
        "(OpenStarry; comments allowed), with `mcp.expose_tools`, `mcp.private_tools`, "
        "`mcp.expose_resources`.",
    ),
    Requirement(
        "C2.5",
        '`[a2a]` `enabled` (false), `listen_path` ("/a2a"), `primary_agent`, '
        '`max_tasks` (1000), `card` ("merged"), `[[a2a.external_agents]]` `name`, '
        "`url`, `auth`, `allow_private`. Absent or false: card and `/a2a` routes answer "
        "404 with a problem that names the key, nothing is stored or discovered, `a2a_*` "
        "tools are disabled (gate 1). Changes take effect on reload; running tasks go on.",
    ),
    Requirement(
        "C2.6",
        "A wrong type, an unknown key, two servers of the same name, or two files that "
        "disagree on one server stop the start with file, line, key and what was "
        "expected. What depends on the world (variable unset, program missing, address "
        "refused, certificate) makes only that server `unhealthy`, with the reason, and "
        "is retried. Never a silent default.",
    ),
    Requirement(
        "C2.7",
        "Every complete configuration example of the seeds loads unchanged (a script cuts"
        " the blocks out of the seeds); fragments load inside the smallest complete file.",
    ),
    Requirement(
        "C2.8",
        "The published JSON Schema is the list of keys: a test fails on a key named in "
        "this contract or the docs and missing there, and on a schema key without type, "
        "default, description and a test of its behaviour. `openfang config check` "
        "validates without starting.",
    ),
    Requirement(
        "C2.9",
        "Reload: under 200 calls in flight, adding, removing and changing one server each"
        " loses none; only the changed server restarts; a bad file leaves the old one in "
        "force and shows in `status` and `config check` with file and line.",
    ),
    Requirement(
        "C3.1",
        'stdio (newline-delimited JSON-RPC), Streamable HTTP, legacy HTTP+SSE. `"sse"` '
        'and `"http"` try Streamable HTTP, then legacy SSE, then plain POST with one '
        "JSON answer.",
    ),
    Requirement(
        "C3.2",
        "At boot every enabled server connects in the background, all side by side; a "
        "slow or broken one delays nobody and is logged. `initialize` with client info, "
        "`notifications/initialized`, `tools/list` through all pages.",
    ),
    Requirement(
        "C3.3",
        "Protocol revisions from 2024-11-05 up to 2026-07-28 are negotiated.",
    ),
    Requirement(
        "C3.4",
        "Tools keep description (`[MCP:{server}] ...`), schema, output schema, title, "
        "annotations. Results keep every part, `structuredContent`, `isError`, `_meta` "
        "and unknown fields.",
    ),
    Requirement(
        "C3.5",
        "`timeout_secs` per request, with real cancellation (`notifications/cancelled`); "
        "progress is passed on and resets the idle clock under an absolute cap; 10 calls "
        "at once per server, the rest wait fairly.",
    ),
    Requirement(
        "C3.6",
        "`tools/list_changed` and a cache TTL of 300 s refresh the list; a failing "
        "refresh keeps the old list.",
    ),
    Requirement(
        "C3.7",
        "Health: `healthy`, `degraded` (a probe over 5 s, or 1-2 failures in a row), "
        "`unhealthy` (3 in a row); probed every 60 s. A dead child fails its calls in "
        "flight within 100 ms; reconnect with backoff from 1 s doubling to 60 s and full "
        "jitter; the breaker opens after 5 failures in a row, one probe after 30 s, and "
        "calls meanwhile fail in under 5 ms with the server's last error.",
    ),
    Requirement(
        "C3.8",
        "A stdio child gets a cleared environment: `PATH` and what `env` lists; `HOME` "
        "and `TMPDIR` are private directories of its own, and with network it gets the "
        "egress proxy's variables (a divergence: the seed says `PATH` only). Its stderr "
        "is drained into the log. It and its descendants are gone within 1 s of the "
        "connection's end, also after `kill -9` of the daemon. `..` is refused in every "
        "path-like element of the command.",
    ),
    Requirement(
        "C3.9",
        "HTTP addresses: host names of metadata services (`metadata.google*`, `instance-"
        "data`) before resolution; private, link-local, metadata and other special ranges"
        " after it, on every redirect, with the checked address pinned for the "
        "connection; failure to resolve refuses. `allow_private = true` per server opens "
        "loopback and private ranges, never the metadata addresses. The same switch, "
        "default false, stands in `[[a2a.external_agents]]`, `[[nodes]]`, `[a2a.push]`, "
        "`[approvals.webhook]` and `[tools.web_fetch]`.",
    ),
    Requirement(
        "C3.10",
        "Resources, templates, prompts, completion, logging, sampling, elicitation and "
        "roots: each listed, used and audited through the pipeline, in all four pairings "
        "of old and new client and server.",
    ),
    Requirement(
        "C4.1",
        "`openfang mcp`: stdio server. Finds a running daemon and proxies to it; without "
        "one it boots in process (the first takes the home's lock and a private socket, "
        "later ones proxy to it, another takes over when it ends: one unbroken audit "
        "chain). It acts as the caller `local-mcp`: agents and the chosen toolset, never "
        "admin. Each agent is a tool `openfang_agent_{name}` with one required string "
        "`message` and the agent's own description; agents that come or go appear or "
        "vanish with `list_changed` within 1 s.",
    ),
    Requirement(
        "C4.2",
        "Both framings on stdin, newline JSON and `Content-Length`, detected per message;"
        " answers in the framing the client used. A missing `protocolVersion` or "
        "`clientInfo` is served as 2024-11-05.",
    ),
    Requirement(
        "C4.3",
        "Messages over 10 MB are drained and answered with an error; bad JSON gets "
        "-32700; the server goes on.",
    ),
    Requirement(
        "C4.4",
        "`POST /mcp` (Streamable HTTP) offers built-ins, extensions and skills, connected"
        " MCP servers, agents: what the caller's key may see. The seed's plain JSON "
        "request and answer work without a session. A key has its own workspace and "
        "memory space under the home, never an agent's, never the daemon's folder.",
    ),
    Requirement(
        "C4.5",
        "`initialize`: the sessionless POST answers as seeds 000-002 show "
        '(`{"tools":{}}`); stdio and sessions announce `listChanged` for tools and '
        "resources (seed 004) and push within 1 s; newer revisions are negotiated. "
        "Capabilities say only what is true.",
    ),
    Requirement(
        "C4.6",
        "`initialize`, `notifications/initialized`, `ping`, `server/discover`, "
        "`tools/list`, `tools/call`, resources, prompts, completion, logging, "
        "subscriptions; notifications are never answered; unknown methods -32601. Unknown"
        " and hidden tools give the same bytes but the id, and the same time (medians of "
        "2,000 calls within 5 %); only the audit tells them apart.",
    ),
    Requirement(
        "C4.7",
        "Exposure: over stdio the agents; over HTTP what the key's scope allows; an "
        "agent's own tools reach others only if listed in `expose_tools`; `private_tools`"
        " always wins.",
    ),
    Requirement(
        "C4.8",
        "`GET /api/mcp/servers` answers in the seed's shape (`env` names only, header "
        "values and URL credentials as `***`); servers that failed stay out of "
        "`connected`; health and last error are in `configured[]`.",
    ),
    Requirement(
        "C4.9",
        "`openfang connect CLIENT` (alias `openfang mcp install`) writes the entry for "
        "Cursor, VS Code, Claude Desktop, Claude Code and others, with preview, backup "
        "and undo.",
    ),
    Requirement(
        "C4.10",
        "Each agent is an MCP server of its own (seed 004): `POST /mcp/agents/{name}` and"
        " `openfang mcp --agent NAME`, with the agent's `serverInfo`, tools = "
        "`expose_tools` minus `private_tools` (default none), callable as `plugin:tool`, "
        "resources from `expose_resources` (default none); calls run under the agent's "
        "and the caller's grants.",
    ),
    Requirement(
        "C5.1",
        "`GET /.well-known/agent.json` (seed) and `agent-card.json` (current): the "
        "primary agent's card (the configured one, else the first by name); the "
        "placeholder (`openfang`, no skills, all capabilities false) where there is none."
        " The seed's card has all its fields in camelCase, `url` = public base + "
        '`listen_path`, modes `["text"]`, one skill per granted tool (id, name with '
        'spaces, `Can use the {tool} tool`, tags `["tool"]`, examples `[]`; `"*"` '
        "shows none in public). `GET /a2a/agents`: `{agents, total}`. A capability is "
        "true only if a test exercises it in a dialect that the card offers.",
    ),
    Requirement(
        "C5.2",
        "The seed's dialect: `POST /a2a/tasks/send` (JSON-RPC body, bare task as the "
        "answer when the task ends or needs input; a failed run is 200 with `failed` and "
        "the reason), `GET /a2a/tasks/{id}`, `POST /a2a/tasks/{id}/cancel`; and `POST "
        "/a2a` with `tasks/send|get|cancel` in a `result` envelope. Status words: "
        "`submitted`, `working`, `inputRequired`, `completed`, `cancelled`, `failed`; "
        "messages in order, `role` user or agent; parts `text`, `file` (`name`, "
        "`mime_type`, base64 `data`), `data`; artifacts `{name, parts}`; `params.id` "
        "continues an `inputRequired` task. 404 for unknown, evicted, foreign and for no "
        "agent; 409 for cancel of a finished one. Reading also accepts `session_id`, "
        "`Submitted`, `input-required`, `canceled`, `{state}`.",
    ),
    Requirement(
        "C5.3",
        "Beside it A2A 1.0, and 0.3 for older peers, over JSON-RPC and HTTP+JSON, with "
        "streaming, listing, cancellation, resubscription and push notifications; one "
        "task store behind all dialects.",
    ),
    Requirement(
        "C5.4",
        "Every agent has its own card and address; a task can name its agent (path, or "
        "`metadata.agent`), else the primary agent answers. All text parts count; files "
        "and data reach the agent.",
    ),
    Requirement(
        "C5.5",
        "`sessionId` / `contextId` continues a conversation of that caller with that "
        'agent; callers never share one; another caller\'s task is "not found".',
    ),
    Requirement(
        "C5.6",
        "The store is bounded; the oldest finished task goes first; running tasks are "
        "never evicted (a full store of them refuses new ones); terminal states are "
        "final; state history is readable. `kill -9` at any of 100 random points: every "
        "acknowledged task is there, finished ones identical, the others resumed or "
        "failed with the reason within 5 s of the next start.",
    ),
    Requirement(
        "C5.7",
        "Cancel: within 1 s of its answer the tool's process or upstream call has ended, "
        "`tool_invocation_end` says cancelled, a late result changes nothing. A caller "
        "that disconnects does not stop a task.",
    ),
    Requirement(
        "C5.8",
        "Client: `discover(url)`, `send_task(url, message, session_id)`, `get_task(url, "
        "id)`, cancel and stream; 30 s, `User-Agent: OpenFang/{major.minor} A2A`, bounded"
        " bodies, address checks as in C3.9, credentials per peer; speaks the seed's "
        "dialect, 0.3 and 1.0. Two of our own nodes work with each other in every "
        "dialect.",
    ),
    Requirement(
        "C5.9",
        "External agents are discovered at boot in the background; a failure is logged "
        "and retried; discovered agents are tools (`a2a:{peer}`).",
    ),
    Requirement(
        "C6.1",
        "An agent is a manifest: name, description, model, system prompt, capabilities "
        "(`tools`, `network`, `memory_read`, `memory_write`, `agent_message`, "
        "`agent_spawn`, `agent_kill`, `shell`), exports, limits. No grant means no "
        'access; `"*"` must be written.',
    ),
    Requirement(
        "C6.2",
        "The 23 built-in tools that the seed counts, by upstream's list: file_read, "
        "file_write, file_list, web_fetch, web_search, shell_exec (alias bash_exec), "
        "agent_send, agent_spawn, agent_list, agent_kill, memory_store, memory_recall, "
        "agent_find, task_post, task_claim, task_complete, task_list, event_publish, "
        "schedule_create, schedule_list, schedule_delete, image_analyze, location_get; "
        "and a2a_discover, a2a_send, system_time. Each has a test of its effect seen from"
        " outside (file on disk, HTTP server hit, schedule fired, other agent's answer), "
        "of its refusal without the grant and of bad input; one without its provider says"
        " which key to set.",
    ),
    Requirement(
        "C6.3",
        "Skills (`SKILL.md`, `skill.toml`) and extensions (`manifest.json`; Python and "
        "Node.js) provide tools and instructions. They run out of process (a divergence "
        "from seed 003) and get `context.call / memory / log / config` over the child's "
        "channel, under their own permissions and the caller's.",
    ),
    Requirement(
        "C6.4",
        "The loop: the model is asked, its tool calls take the same pipeline as "
        "everybody's (reads side by side), results go back, until it answers or a budget "
        "ends. Streaming throughout. A session over the window is compacted so that no "
        "tool call is left without its result, system prompt and last user turn stay "
        "whole, and the stored history is never lost.",
    ),
    Requirement(
        "C6.5",
        "Models: OpenAI-compatible, Anthropic, Gemini, Ollama and others through one "
        "library; an embedded default that needs no key and no network.",
    ),
    Requirement(
        "C6.6",
        "A spawned agent gets at most its parent's grants, workspace and budget.",
    ),
    Requirement(
        "C7.1",
        "Identify the caller from its credential, never from the body.",
    ),
    Requirement(
        "C7.2",
        "Read the trace context (C8).",
    ),
    Requirement(
        "C7.3",
        "Resolve the name to a tool that this caller can see (grants x exports x the "
        "server's `allow_tools` x `private_tools`: these hide; a disabled tool leaves the"
        " list but resolves, so that gate 1 answers).",
    ),
    Requirement(
        "C7.4",
        "Recursion guard, loop guard, rate and quota.",
    ),
    Requirement(
        "C7.5",
        "Arguments at most 1 MiB, checked before anything reads them, then against the "
        "tool's JSON Schema; files and data parts become blobs before and travel as "
        "references; a whole message has 10 MB.",
    ),
    Requirement(
        "C7.6",
        "The six gates, in the seed's order and words: 1 not enabled (`Tool is "
        "disabled`); 2 planning mode and an effect tag (`Planning mode cannot use tools "
        "with side effects`); 3 execution mode and risk >= HIGH without a frozen spec and"
        " its hash (`Execution mode requires spec_frozen=True`); 4 risk >= MEDIUM without"
        " a project (`Tool requires project_id`); 5 any tag in the caller's blacklist or "
        "the server's `deny_side_effect_tags` (`Side effect {tag} is blacklisted`); 6 "
        "`requires_admin_token` without a valid one (`Tool requires admin_token`). "
        "Results say `Policy violation: ...`. Risk is ordered LOW < MEDIUM < HIGH < "
        "CRITICAL (`MED` accepted).",
    ),
    Requirement(
        "C7.7",
        "What the gates read is bound to the key (`openfang keys create --project P "
        "--mode M`), the manifest or the toolset, with defaults that let honest work go "
        "on: `mode` (`execution`), `project` (`init` makes `default` and binds it), "
        "`spec`, `blacklist`. A call may choose among what is bound, or tighten: over "
        "HTTP in the body's `context` (`mode`, `project_id`, `spec_hash`, `task_id`), "
        'over MCP in `_meta["openfang/context"]`, in A2A in `metadata.openfang`, in the'
        " CLI by `--mode --project --spec`. `spec_frozen` is never taken from the caller:"
        " it is looked up by `spec_hash`. The admin *token* is a second credential, not "
        "the key (`openfang keys create --admin-token [--tools GLOB] [--ttl 1h]`; "
        '`X-Admin-Token`, `_meta["openfang/adminToken"]`, `--admin-token-file`; never '
        "in the arguments, never in the log); a key with the role admin manages the node "
        'and does not open gate 6. `[policy] profile = "seed"` (the six gates as they '
        'stand) or `"guided"` (default: for HIGH and above an approval or a standing '
        "grant may stand in for a frozen spec). `explain` names what is missing and the "
        "command that supplies it.",
    ),
    Requirement(
        "C7.8",
        "Custom gates after them, from configuration or code: `[plugins] gates = "
        '["python:file.py:Class"]`; one that raises or takes over 100 ms refuses.',
    ),
    Requirement(
        "C7.9",
        "Taint (C9), then approval where policy asks for one (C15).",
    ),
    Requirement(
        "C7.10",
        "Audit `tool_invocation_start` before anything runs. With the database full, "
        "locked or read-only no tool has an effect, the caller gets 503 or `isError` "
        "`audit unavailable`, and service resumes by itself.",
    ),
    Requirement(
        "C7.11",
        "Execute: tools at most the smallest of tool or server timeout, 60 s (only the "
        "operator raises it) and the chain's deadline, with real cancellation; `agent:*` "
        "and `a2a:*` calls are bounded by run budget and chain deadline instead. Waiting "
        "for an approval or a slot is not counted.",
    ),
    Requirement(
        "C7.12",
        "Shape: all text parts together at most 50,000 characters, cut with `[truncated: "
        "{shown} of {total} characters, {uri}]`; the whole is readable at that URI by the"
        " same caller for 1 h; `structuredContent` above the cap becomes that link, never"
        " cut; binary parts have 10 MB. Redaction changes only matched secrets; all else "
        "passes byte for byte. Labels are put on.",
    ),
    Requirement(
        "C7.13",
        "Audit `tool_invocation_end`, also when the caller has gone. One "
        "`policy_decision` per call lists each gate's verdict (those after a refusal: not"
        " reached; `explain` evaluates all), `policy_violation` each refusal with step, "
        "gate and reason code.",
    ),
    Requirement(
        "C7.14",
        "`openfang explain TOOL` shows the same decision without running anything.",
    ),
    Requirement(
        "C7.15",
        "Adapters (`[plugins] adapters`) may raise a tool's risk, and lower it only for "
        '`trust = "high"`; audit handlers (`[plugins] audit_handlers`, '
        "`handle_audit_event`) run behind the log, at least once, in order, and never "
        "delay a call.",
    ),
    Requirement(
        "C8.1",
        "Every call carries a trace: W3C `traceparent` (HTTP header, MCP `_meta`, A2A "
        "metadata) and `X-OpenStarry-Trace-ID` (header, and a `_meta` / metadata key of "
        "that name; 1-128 visible ASCII characters, kept as received on every hop and in "
        "the audit). Missing or malformed starts a new chain.",
    ),
    Requirement(
        "C8.2",
        "The first call is depth 1; 5 runs, 6 is refused at once with `recursion_limit` "
        "(JSON-RPC -32000 with depth and path at the edge, an `isError` result to a "
        "model, `failed` in A2A). So is a call back to an agent that is already waiting "
        "in the chain, unless it allows that.",
    ),
    Requirement(
        "C8.3",
        "Depth alone still allows 111,110 calls at a fan-out of 10: a chain has a budget "
        "of calls to agents and peers (64), a run one of plain tools (500), both with a "
        "shrinking deadline and a limit of calls at once.",
    ),
    Requirement(
        "C8.4",
        "A peer can raise the depth, never lower it: between our own nodes the chain is "
        "signed; a peer that drops the context while our call to it is in flight inherits"
        " that call's chain.",
    ),
    Requirement(
        "C8.5",
        "Repeated trips open a breaker for that edge for 30 s. Each call taken from a "
        "peer is published as the event `EXEC:TOOL_CALL`.",
    ),
    Requirement(
        "C9.1",
        "Labels, a bit set that only grows: `external_network` (untrusted), "
        "`untrusted_agent`, `user_input`; `secret`, `pii`, `private`, `local_file`. A "
        "source labels its results by what the tool is and by what they contain; a run, a"
        " conversation and a task hold the union of what entered them.",
    ),
    Requirement(
        "C9.2",
        "Sinks per tool: an effect (none, local write, external write, external read, "
        "exec, money, identity) and the arguments that choose who, where and what "
        "(recipient, URL, host, path, amount, id: by schema format and name unless "
        "declared). Any URL argument is a sink, also on a tool that only reads.",
    ),
    Requirement(
        "C9.3",
        "Rules in this order: untrusted and exec, money or identity asks, always; "
        "untrusted and any effect asks or refuses unless each target stands word for word"
        " in trusted text (the user's own message, configuration, a trusted tool's "
        "result); a secret never leaves; private (`private`, `pii`, `local_file`) and "
        "untrusted together never reach an external sink that the user did not name; the "
        "rest passes. An approval declassifies that one call.",
    ),
    Requirement(
        "C9.4",
        "Labels cross hops in `_meta` and A2A metadata (the vocabulary of the open "
        "proposal SEP-1913), signed between our own nodes; a peer may add labels, never "
        "remove them; unsigned means untrusted.",
    ),
    Requirement(
        "C9.5",
        "End to end over MCP, A2A and HTTP: page to `shell_exec` asks, secret to URL is "
        "refused, the twin without injection passes; the labels are in the audit of both "
        "calls.",
    ),
    Requirement(
        "C10.1",
        "A run is an agent's run, an MCP session or stdio connection, an A2A task, else "
        "the trace; direct calls without a shared trace are never a loop.",
    ),
    Requirement(
        "C10.2",
        "Identical calls in one run (same tool, same canonical arguments): warn at 3, "
        "block at 5; three times that for tools declared as polls; a changed result "
        "resets the count.",
    ),
    Requirement(
        "C10.3",
        "Identical outcome: warn at 2, block at 3. A-B-A-B-A-B and A-B-C three times "
        "block. 30 calls without progress end the run.",
    ),
    Requirement(
        "C10.4",
        "Thresholds are configuration. A warning is added to the result, a block is a "
        "result that says what to do instead.",
    ),
    Requirement(
        "C11.1",
        "Strongest first: operator's override, manifest, MCP annotations (may raise; "
        'lower only for `trust = "high"`), whole-word inference on the name '
        "(`get_created_items` is not a write, `prune` is not `run`), description (may "
        "only raise), unknown.",
    ),
    Requirement(
        "C11.2",
        "The seed's keyword tables are the data, and can be extended. Tags are read "
        "(`fs.read`, `database.read`, `network.dns`, `cloud.key_read`) or effect (the "
        "rest, and `unknown`); gate 2 counts effects only, gate 5 both. A foreign tool of"
        " risk >= HIGH without an effect tag gets `unknown`; a tool that no rule knows is"
        " MEDIUM and `unknown`. An unknown tag in configuration is an error.",
    ),
    Requirement(
        "C11.3",
        "A tool whose description or schema changes after it was first seen is held back "
        "until accepted, with a diff (rug pull).",
    ),
    Requirement(
        "C11.4",
        "Trust: `low` (default over the network and for unpinned `npx`/`uvx`): every "
        "effect needs an approval or admin token; `medium` (default else): by the gates, "
        "effects with enhanced audit; `high`: annotations may lower. What is imported "
        "waits as C2.1 says; a yes to `openfang up` or `--yes` accepts the rest, a server"
        " with a CRITICAL tool only `openfang servers enable NAME`.",
    ),
    Requirement(
        "C12.1",
        "Public: `/api/health` and `/api/ready` (no details), `/.well-known/agent.json`, "
        "`agent-card.json`, the same card under `/a2a/agents/{name}/.well-known/` for "
        "agents that the operator publishes (default: the primary one), `oauth-protected-"
        "resource*`, `jwks.json`, the sign-in page and its assets. All else needs a key, "
        "`/metrics` and `/a2a/agents` included (a test lists every route with what it "
        "requires). `auth.require_key = false` gives the seed's behaviour of an unset "
        "`api_key`: accepted only while listening on loopback, with a warning at every "
        "start, and callers then have the scope of `local-mcp`, never admin.",
        open="the page",
    ),
    Requirement(
        "C12.2",
        "Host and Origin are checked; bodies are bounded; slow senders are cut off; "
        "errors are RFC 9457 problems (JSON-RPC errors where the answer is an envelope).",
    ),
    Requirement(
        "C12.3",
        "GCRA per key and per address: 500 cells a minute, burst 500 by default "
        "(`[limits] cells_per_minute`, `burst`; per key `openfang keys create --limit "
        "CELLS`; load tests and benches raise them), costs by route as data (message 30, "
        "call 5, health 1); the 501st cell gets 429; a wait of `Retry-After` is enough, "
        "one second less is not; failed sign-ins are limited before the key is looked up.",
    ),
    Requirement(
        "C12.4",
        "`/v1/chat/completions` and `/v1/models` offer the agents to OpenAI clients.",
    ),
    Requirement(
        "C12.5",
        '`POST /api/tools/{id}/call` takes `{"arguments": {...}, "context": {...}}` '
        'and answers 200 `{"call_id", "outcome": "ok" | "error", "content": '
        '[...], "structured", "labels": [...], "audit": {"start", "end"}}`; a '
        "refusal is a problem with `rule`, `gates` and `way_out`: 403 (404 unknown or "
        "hidden, 422 arguments, 429 guard, 202 parked). `{id}` is any name of C1.5, "
        "percent-encoded. `--json` on the CLI prints the same object.",
    ),
    Requirement(
        "C13.1",
        "Append-only, hash-chained over a canonical encoding, written before the act.",
    ),
    Requirement(
        "C13.2",
        "`openfang audit verify` finds edit, delete, insert, swap, change of time, cut "
        "tail and a whole rewrite (signed checkpoints kept in a second place).",
    ),
    Requirement(
        "C13.3",
        "The seed's two queries run as written in `openfang audit sql` (read-only) "
        "through the view `task_audits` (`audit_id`, `task_id`, `level`, `event_type`, "
        "`payload`, `context` with `source_type`, `created_at`) on SQLite 3.38+ and "
        "Postgres.",
    ),
    Requirement(
        "C13.4",
        "It survives deletion of what it speaks about; secrets are redacted and their digest kept.",
    ),
    Requirement(
        "C13.5",
        "Export as JSON lines, CEF, OTLP; handlers register.",
    ),
    Requirement(
        "C13.6",
        "A receipt (sequence, hash) in the result's `_meta`.",
    ),
    Requirement(
        "C14.1",
        "`openfang servers health --json` and `GET /api/mcp/health`: `{server: "
        "healthy|degraded|unhealthy}`; `servers refresh` and `POST "
        "/api/mcp/servers/refresh` answer a count; tool lists filter by source, risk and "
        "tag.",
    ),
    Requirement(
        "C14.2",
        "Log lines in the seed's words (`Connected to MCP server: {id}`, the total of MCP"
        " tools, `Request timed out: {method} (id={id})`, `Tool invoked: {tool_id}, "
        "result: {success}`, `Policy violation: {reason}`, discoveries with name, URL and"
        " skill count), structured, with the trace id.",
    ),
    Requirement(
        "C14.3",
        "Prometheus `/metrics`; OpenTelemetry traces and metrics by the GenAI and MCP conventions.",
    ),
    Requirement(
        "C15.1",
        "A question is durable and bound to caller, tool, hash of the canonical arguments"
        " and time; once, for this session, or as a rule; spent once.",
    ),
    Requirement(
        "C15.2",
        "Answered in the page, the CLI, by webhook, as MCP elicitation or "
        "`input_required`, as A2A `input-required`; a timeout denies.",
    ),
    Requirement(
        "C15.3",
        "The waiting call is a row: an edge that can wait waits, one that cannot answers "
        "202 / `input_required` / `input-required` with its id. After a restart the "
        "question and its answer are still there: an agent's run takes it up from its "
        "journal, a client by sending the identical call again, which uses the approval "
        "once.",
    ),
    Requirement(
        "C16.1",
        "Children (stdio MCP servers, extensions, skills, `shell_exec`, code agents) run "
        'sandboxed: `sandbox = "auto" | "required" | "off"`.',
        open="extensions",
    ),
    Requirement(
        "C16.2",
        "Stdio MCP servers default to `network = true` through the guarded egress, a "
        "private `HOME` with a package cache, read-write on existing directories named in"
        " `args`, read-only on files named there and their folder; the others default to "
        "no network and their own workspace or folder.",
    ),
    Requirement(
        "C16.3",
        "Each complete server example of the seeds that can start offline starts in the "
        "default sandbox in a test.",
    ),
    Requirement(
        "C16.4",
        "The active layers are shown truthfully.",
    ),
    Requirement(
        "C17.1",
        "A named selection (servers, tools by glob, agents; prefix or none; renames; "
        "overridden descriptions) served at `/mcp/{toolset}` and by `openfang mcp "
        "--toolset`.",
    ),
    Requirement(
        "C17.2",
        '`mode = "search"` offers `search_tools` and `call_tool` instead of the whole list.',
    ),
    Requirement(
        "C18.1",
        "Named keys with scopes (edges, toolsets, agents, admin), expiry and limits, "
        "stored as HMACs, shown once.",
    ),
    Requirement(
        "C18.2",
        "OAuth 2.1 resource server for a configured issuer.",
    ),
    Requirement(
        "C18.3",
        "Secrets encrypted at rest and redacted everywhere.",
    ),
    Requirement(
        "C18.4",
        "No token is ever passed on upstream.",
    ),
    Requirement(
        "C19.1",
        "`openfang up` from nothing to a governed call in under 60 s.",
    ),
    Requirement(
        "C19.2",
        "The web page, live.",
    ),
    Requirement(
        "C19.3",
        "Docs whose every command and code block is run by a test.",
    ),
    Requirement(
        "C20",
        "`openfang.compat` offers, over our own parts, the seed's words so that its "
        "Python blocks run as written: `CapabilityRegistry.list_tools / get_tool / "
        "refresh_mcp_servers`, `ToolRouter.invoke_tool`, `ToolPolicyEngine.check / "
        "register_gate`, `PolicyGate`, `PolicyDecision`, `ToolDescriptor`, `ToolResult`, "
        "`InvocationContext`, `ToolSource`, `RiskLevel`, `AuditEvent`, "
        "`audit_logger.register_handler`, `MCPClient.connect / list_tools / call_tool / "
        "health_check / disconnect`, `MCPAdapter.mcp_tool_to_descriptor / "
        "infer_risk_level / infer_side_effects / mcp_result_to_tool_result`, "
        "`MCPConfigManager.load_config / get_enabled_servers / is_tool_allowed / "
        "is_side_effect_denied`, `mcp_health_check.check_all`, `A2aClient.discover / "
        "send_task / get_task`, `A2aTaskStore.insert / get / update_status / complete / "
        "fail / cancel`, `build_agent_card`, `find_daemon`. In a daemon "
        "`MCPClient.call_tool` takes the pipeline; the policy engine there is the `seed` "
        "profile.",
    ),
)
BY_ID = {requirement.id: requirement for requirement in REQUIREMENTS}
