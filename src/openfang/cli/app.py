"""Every command and where it lies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cyclopts import App, CycloptsError, Group, Parameter

from openfang.cli.errors import report_usage
from openfang.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

_PLAIN = Parameter(negative=(), show_default=False)
_EXITS = """\
Exit codes: 0 done, 1 an error, 2 wrong usage, 3 refused, 4 the tool failed, 5 waits for a person.
`OPENFANG_HOME` names the home, `OPENFANG_API_KEY` the key, `OPENFANG_LISTEN` the address.
"""
# How the list of all commands is divided, for somebody who reads it for the first time.
_CHAPTERS = {
    "First steps": ("up", "init", "start", "status", "stop", "demo", "doctor"),
    "Calls": ("tools", "explain", "policy", "approvals", "audit", "results", "spec"),
    "Agents": ("agents", "chat", "sessions", "memory", "schedules", "board", "usage", "a2a"),
    "Servers and clients": ("servers", "ext", "skills", "import", "secrets", "connect", "mcp"),
    "The node": ("config", "keys", "nodes", "storage", "backup", "restore", "completion"),
}
_COMMANDS = {
    "up": ("up:up", "From nothing to a governed call: home, daemon, servers, clients, demo."),
    "init": ("init:init", "Make the home: configuration, database, first key."),
    "start": ("start:start", "Serve the home over HTTP, here or in the background."),
    "stop": ("stop:stop", "End the daemon, once its calls have ended."),
    "status": ("status:status", "Say whether a daemon runs, and how it is."),
    "import": ("imports:import_servers", "Take over the MCP servers of other programs."),
    "connect": ("connect:connect", "Wire a client to this node: show the change, back up, write."),
    "mcp": ("mcp:mcp", "Serve an MCP client on standard input and output."),
    "chat": ("chat:chat", "Talk to an agent, line by line."),
    "usage": ("usage:usage", "Show what was used up: tokens, money, calls."),
    "explain": ("explain:explain", "Show how a call would be decided, without making it."),
    "doctor": ("doctor:doctor", "Look whether home and machine are in order."),
    "backup": ("backup:backup", "Copy the whole home into one file, while it is in use."),
    "restore": ("backup:restore_home", "Put the home back as a backup has it."),
    "completion": ("completion:completion", "Print the completion script of a shell."),
    "demo": ("demo:demo", "Make four calls and show what became of each."),
}
_GROUPS = {
    "tools": (
        "See and call tools.",
        {
            "list": ("tools:list_tools", "List what this key can see."),
            "show": ("tools:show_tool", "Show one tool, its schema, and what changed."),
            "call": ("call:call_tool", "Make a call."),
            "batch": ("batch:batch", "Make calls from JSON lines, all in one run."),
            "accept": ("tools:accept_tool", "Take a tool that is held back as it is now."),
        },
    ),
    "servers": (
        "See and change the MCP servers whose tools are offered.",
        {
            "list": ("servers:list_servers", "List the servers, and how each is."),
            "show": ("servers:show_server", "Show everything that is known of one."),
            "tools": ("servers:list_server_tools", "List the tools of one."),
            "health": ("servers:health", "Say which are healthy."),
            "refresh": ("servers:refresh", "Ask for all tools again."),
            "add": ("entries:add", "Write one down; it waits until it is enabled."),
            "remove": ("entries:remove", "Take one out of the configuration."),
            "enable": ("servers:enable", "Accept one: it is connected."),
            "disable": ("servers:disable", "Let one go; its entry stays."),
            "restart": ("servers:restart", "Connect to one anew."),
            "login": ("login:login", "Sign in to one, with a browser."),
            "logout": ("login:logout", "Forget the sign-in to one."),
            "logs": ("servers:logs", "Show what one last wrote for people."),
            "held": ("held:list_held", "Show what of them waits for a person, and why."),
            "accept": ("held:accept_held", "Take what is held back as it is now."),
            "test": ("servers:try_server", "Connect to one, and say what is wrong."),
        },
    ),
    "ext": (
        "Add tools of your own or of others: extensions, each in a folder.",
        {
            "new": ("ext_new:new", "Make a folder with one that works, and its test."),
            "install": ("ext:install", "Take one in, and show what it would be allowed to do."),
            "list": ("ext:list_extensions", "List those that are installed, and how each is."),
            "show": ("ext:show_extension", "Show one: files, tools, permissions, findings."),
            "enable": ("ext:enable", "Accept one as it is shown: its tools are offered."),
            "disable": ("ext:disable", "Let one go; its files stay."),
            "remove": ("ext:remove", "Delete one, with its files."),
            "check": ("ext:check", "Find every mistake of a folder, and install nothing."),
        },
    ),
    "skills": (
        "Add instructions that models read when they need them, and tools to follow them with.",
        {
            "new": ("skills_new:new", "Make a folder with one that works, and its test."),
            "install": ("skills:install", "Take one in, and show what it would be allowed to do."),
            "list": ("skills:list_skills", "List those that are installed, and how each is."),
            "show": ("skills:show_skill", "Show one: files, tools, permissions, findings."),
            "enable": ("skills:enable", "Accept one as it is shown: it is offered."),
            "disable": ("skills:disable", "Let one go; its files stay."),
            "remove": ("skills:remove", "Delete one, with its files."),
            "check": ("skills:check", "Find every mistake of one, and install nothing."),
        },
    ),
    "secrets": (
        "Keep what MCP servers and models need to sign in, encrypted.",
        {
            "list": ("secrets:list_secrets", "List names, and the servers that refer to them."),
            "set": ("secrets:set_secret", "Store one: from standard input, or asked for unseen."),
            "remove": ("secrets:remove", "Delete one."),
        },
    ),
    "agents": (
        "Write agents, and send them messages.",
        {
            "list": ("agents:list_agents", "List those that this key may call."),
            "show": ("agents:show_agent", "Show one, and what it may reach."),
            "new": ("agents:new", "Write one down, with comments to go by."),
            "templates": ("agents:templates", "List those that are there to be copied."),
            "edit": ("agents:edit", "Change one with your editor."),
            "validate": ("agents:validate", "Find every mistake, with file, line and key."),
            "send": ("agents:send", "Send one message, and print the answer."),
        },
    ),
    "sessions": (
        "Read and delete conversations with agents.",
        {
            "list": ("sessions:list_sessions", "List them, the newest first."),
            "show": ("sessions:show_session", "Show all that was said in one."),
            "export": ("sessions:export", "Write one out, as JSON lines or Markdown."),
            "delete": ("sessions:delete", "Delete one and all that was said in it."),
        },
    ),
    "board": (
        "See what agents have to do for you, and what came of it.",
        {
            "list": ("board:list_board", "List the tasks on your board, the newest first."),
            "show": ("board:show_task", "Show one task whole, with its result."),
        },
    ),
    "memory": (
        "See and forget what is remembered.",
        {
            "list": ("memory:list_memories", "List it, the newest first."),
            "search": ("memory:search", "Find it by words, the best first."),
            "show": ("memory:show_memory", "Show what is kept under a key, whole."),
            "forget": ("memory:forget", "Forget what is kept under a key."),
        },
    ),
    "schedules": (
        "Have agents told something at a later time.",
        {
            "list": ("schedules:list_schedules", "List them, with the next run and the last."),
            "show": ("schedules:show_schedule", "Show one."),
            "create": ("schedules:create", "Have an agent told something at its time."),
            "delete": ("schedules:delete", "Delete one."),
            "pause": ("schedules:pause", "Let one not run until it is resumed."),
            "resume": ("schedules:resume", "Let one run again."),
            "run": ("schedules:run", "Let one run now, whenever it is due."),
        },
    ),
    "a2a": (
        "Speak with agents elsewhere, and give ours work that goes on.",
        {
            "discover": ("a2a:discover", "Read the card of an agent elsewhere."),
            "send": ("a2a:send", "Send a message, here or elsewhere, and print the answer."),
            "watch": ("tasks:watch", "Show a task and what happens to it, until it has ended."),
            "tasks": ("tasks:list_tasks", "List tasks, the last changed first."),
            "cancel": ("tasks:cancel", "End a task, and the work on it."),
            "peers": ("a2a:peers", "List the agents elsewhere, and how each is."),
        },
    ),
    "storage": (
        "Say where the home keeps its state.",
        {"migrate": ("storage:migrate", "Move a home on SQLite over to a Postgres server.")},
    ),
    "nodes": (
        "See the nodes that share the database, and those elsewhere that are believed.",
        {
            "list": ("nodes:list_nodes", "List the nodes of the database, and those believed."),
            "drain": ("nodes:drain", "Let a node take nothing new."),
            "resume": ("nodes:resume", "Let a node that drains take work again."),
            "trust": ("nodes:trust", "Fetch a node's key, show its fingerprint, write it down."),
            "remove": ("nodes:remove", "Forget a dead node, or believe one elsewhere no longer."),
        },
    ),
    "results": (
        "Read what was too long to show.",
        {"show": ("results:show_result", "Show the whole of a result that was cut.")},
    ),
    "approvals": (
        "Answer the questions that calls wait for.",
        {
            "list": ("approvals:list_questions", "List the open questions."),
            "show": ("approvals:show_question", "Show one question."),
            "approve": ("approvals:approve", "Say yes: once, for the session, or as a rule."),
            "deny": ("approvals:deny", "Say no, or take a yes back."),
        },
    ),
    "audit": (
        "Read and check the audit log.",
        {
            "tail": ("audit:tail", "Show the newest records."),
            "search": ("audit:search", "Find records."),
            "show": ("audit:show", "Show one record, whole."),
            "verify": ("audit:verify", "Check that the log is what was written."),
            "sql": ("audit:sql", "Run queries that only read."),
            "export": ("export:export", "Write the log as JSON lines, CEF or OTLP."),
            "prove": ("export:prove", "Say whether the log has the record of a receipt."),
        },
    ),
    "keys": (
        "Make, list and end keys.",
        {
            "create": ("keys:create", "Make a key or an admin token; it is shown once."),
            "list": ("keys:list_keys", "List keys and tokens."),
            "revoke": ("keys:revoke", "End a key or token."),
        },
    ),
    "spec": (
        "Freeze plans.",
        {
            "freeze": ("spec:freeze", "Freeze a file as a plan, and tell its hash."),
            "list": ("spec:list_specs", "List frozen plans."),
        },
    ),
    "policy": (
        "Check, explain, test and replay the operator's rules.",
        {
            "check": ("policy:check_policy", "Find every mistake, with file, line and key."),
            "explain": ("policy:explain", "Show what the rules say of a call, and why."),
            "test": ("policy:try_policy", "Run the tests that stand in the file."),
            "replay": ("policy:replay", "Show what a draft would have changed lately."),
        },
    ),
    "config": (
        "Check and show the configuration.",
        {
            "check": ("config:check_config", "Find every mistake, with file, line and key."),
            "show": ("config:show_config", "Show what is in force, without secrets."),
            "schema": ("config:schema", "Print the JSON Schema of all keys."),
            "reload": ("reload:reload_config", "Let the daemon read it anew."),
            "path": ("config:path", "Tell where the file is."),
        },
    ),
}


def build_app(asked: Sequence[str] = ()) -> App:
    """Register every command by its path; none is imported before it runs.

    The one that is asked for speaks for itself: its own help says more than the list of all.
    """
    app = App(
        name="openfang",
        help="One governed path between agents, their tools and the world.",
        help_epilogue=_EXITS,
        help_format="markdown",
        version=__version__,
        version_flags=["--version", "-V"],
        default_parameter=_PLAIN,
        result_action="return_value",
        print_error=False,
        exit_on_error=False,
        suppress_keyboard_interrupt=False,
    )
    app["--help"].group = app["--version"].group = Group("Options", sort_key=len(_CHAPTERS))
    for number, (title, names) in enumerate(_CHAPTERS.items()):
        chapter = Group(title, sort_key=number)
        for place, name in enumerate(names):
            _register(app, name, chapter, place, tuple(asked[:2]))
    return app


def _register(app: App, name: str, chapter: Group, place: int, asked: tuple[str, ...]) -> None:
    if name in _COMMANDS:
        path, text = _COMMANDS[name]
        said = None if asked[:1] == (name,) else text
        app.command(f"openfang.cli.{path}", name=name, help=said, group=chapter, sort_key=place)
        return
    text, commands = _GROUPS[name]
    group = App(name=name, help=text, group=chapter, sort_key=place)
    for command, (path, what) in commands.items():
        said = None if asked == (name, command) else what
        group.command(f"openfang.cli.{path}", name=command, help=said)
    app.command(group)


def obey(arguments: Sequence[str]) -> int:
    """Find the command, and run it."""
    try:
        full = _in_full(arguments)
        return build_app(full)(full) or 0
    except CycloptsError as error:
        return report_usage(str(error), error.command_chain or ())


def _in_full(arguments: Sequence[str]) -> Sequence[str]:
    """Say `openfang mcp install` as what it is."""
    return ["connect", *arguments[2:]] if arguments[:2] == ["mcp", "install"] else arguments
