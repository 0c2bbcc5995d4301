"""Old and new clients with old and new servers, with us between them: what works, as a table."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from tests.cluster.housed import startable
from tests.conformance.starting import ENVIRONMENT, ROOT, command, fixture
from tests.faults.daemon import NO_LIMITS, make_home
from tests.peers.clients import Seen, Task, Web

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from pathlib import Path

    from tests.faults.daemon import Daemon
    from tests.peers.a2a.house import House
    from tests.peers.clients import Era, Target

ASKS: Final = "test_input_required_result"
FORM: Final = {"name": "Ada", "color": "red", "username": "ada", "email": "ada@example.org"}
SERVERS: Final = ("modern-http", "legacy-http", "modern-stdio", "legacy-stdio")
_ENTRY: Final = """
[[mcp_servers]]
name = "{name}"
trust = "high"
risk = "LOW"
allow_private = true
roots = true
{keys}

[toolsets.{name}]
servers = ["{name}"]
prefix = false
"""


def call(name: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return "tools/call", {"name": name, "arguments": arguments}


REQUESTS: Final[Mapping[str, tuple[str, dict[str, Any]]]] = {
    "tools/list": ("tools/list", {}),
    "tools/call": call("test_simple_text"),
    "a tool's own error": call("test_error_handling"),
    "progress": call("test_tool_with_progress"),
    "log messages": call("test_tool_with_logging"),
    "resources/list": ("resources/list", {}),
    "resources/templates/list": ("resources/templates/list", {}),
    "resources/read": ("resources/read", {"uri": "test://template/7/data"}),
    "prompts/list": ("prompts/list", {}),
    "prompts/get": (
        "prompts/get",
        {"name": "test_prompt_with_arguments", "arguments": {"arg1": "one", "arg2": "two"}},
    ),
    "completion/complete": (
        "completion/complete",
        {
            "ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"},
            "argument": {"name": "arg1", "value": ""},
        },
    ),
    "elicitation": call("test_elicitation", message="Who are you?"),
    "sampling": call("test_sampling", prompt="Say something"),
    "roots": call(f"{ASKS}_list_roots"),
    "three questions at once": call(f"{ASKS}_multiple_inputs"),
    "one question after another": call(f"{ASKS}_multi_round"),
}
Answer: TypeAlias = "dict[str, Any]"


def _text(answer: Answer) -> str:
    parts = answer.get("result", {}).get("content", [])
    return " ".join(part.get("text", "") for part in parts)


def _listed(key: str) -> Callable[[Answer, Seen], bool]:
    return lambda answer, seen: bool(answer.get("result", {}).get(key)) and bool(seen)


def _told(method: str, count: int) -> Callable[[Answer, Seen], bool]:
    return lambda answer, seen: (
        "result" in answer and sum(told["method"] == method for told in seen.told) >= count
    )


def _asked(method: str, words: str) -> Callable[[Answer, Seen], bool]:
    return lambda answer, seen: words in _text(answer) and method in seen.questions


CHECKS: Final[Mapping[str, Callable[[Answer, Seen], bool]]] = {
    "tools/list": _listed("tools"),
    "tools/call": lambda answer, _: _text(answer) == "A simple text.",
    "a tool's own error": lambda answer, _: answer.get("result", {}).get("isError") is True,
    "progress": _told("notifications/progress", 3),
    "log messages": _told("notifications/message", 3),
    "resources/list": _listed("resources"),
    "resources/templates/list": _listed("resourceTemplates"),
    "resources/read": lambda answer, _: "7" in answer["result"]["contents"][0]["text"],
    "prompts/list": _listed("prompts"),
    "prompts/get": lambda answer, _: "one" in str(answer["result"]["messages"]),
    "completion/complete": lambda answer, _: "values" in answer["result"]["completion"],
    "elicitation": _asked("elicitation/create", "ada"),
    "sampling": _asked("sampling/createMessage", "an answer"),
    "roots": _asked("roots/list", "file:///workspace"),
    "three questions at once": _asked("roots/list", "an answer"),
    "one question after another": _asked("elicitation/create", "red"),
}


def task(target: Target, era: Era) -> Task:
    """Everything, one after another; log messages are wanted from the start."""
    requests: list[tuple[str, Mapping[str, Any]]] = list(REQUESTS.values())
    if era == "legacy":
        requests.insert(0, ("logging/setLevel", {"level": "info"}))
    else:
        level = {"io.modelcontextprotocol/logLevel": "info"}
        requests = [(method, {**params, "_meta": level}) for method, params in requests]
    return Task(target=target, era=era, requests=tuple(requests), form=FORM)


def verdicts(seen: Seen) -> dict[str, bool]:
    """Say of each thing whether it worked."""
    answers = seen.answers[-len(REQUESTS) :]
    named: Sequence[tuple[str, Answer]] = list(zip(REQUESTS, answers, strict=True))
    return {name: "result" in answer and CHECKS[name](answer, seen) for name, answer in named}


@contextmanager
def between(folder: Path, server: str) -> Generator[House]:
    """A gateway before four servers, of each era over each transport, each with its toolset.

    On a database server it is several nodes.
    """
    with fixture() as modern, fixture("--legacy") as legacy:
        entries = [
            _web("modern-http", modern),
            _web("legacy-http", legacy),
            _child("modern-stdio"),
            _child("legacy-stdio", "--legacy"),
        ]
        home = make_home(folder / "home", NO_LIMITS + "".join(entries))
        with startable(home, server) as start:
            found = start()
            for daemon in found.daemons:
                _wait_for_health(daemon)
            yield found


def _web(name: str, url: str) -> str:
    return _ENTRY.format(name=name, keys=f'transport = {{ type = "http", url = "{url}" }}')


def _child(name: str, *options: str) -> str:
    program, *args = command("--stdio", *options)
    quoted = ", ".join(f'"{word}"' for word in args)
    environment = ", ".join(f'{key} = "{value}"' for key, value in ENVIRONMENT.items())
    keys = (
        f'transport = {{ type = "stdio", command = "{program}", args = [{quoted}] }}\n'
        f'env = {{ {environment} }}\nfs_read = ["{ROOT / "tests"}"]'
    )
    return _ENTRY.format(name=name, keys=keys)


def _wait_for_health(daemon: Daemon) -> None:
    wanted = dict.fromkeys(SERVERS, "healthy")
    for _ in range(20_000):
        if daemon.ask("GET", "/api/mcp/health").json == wanted:
            return
    raise AssertionError(daemon.home.log.read_text())


def served(daemon: Daemon, server: str) -> Web:
    """Where this server is shown as it is, to who has a key."""
    host, port = daemon.address
    headers = {"Authorization": f"Bearer {daemon.home.key}"}
    return Web(f"http://{host}:{port}/mcp/{server}", headers)
