"""Every command that speaks with the daemon, typed by who has no key, a bad one or a narrow one.

The list of commands is the program's own: one that is new is tried here, or the test says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.conftest import serving

from openfang.cli.app import _COMMANDS, _GROUPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cli.conftest import Cli, Ran

pytestmark = pytest.mark.requirement("C12.1", "C18.1")

# These ask no daemon for anything: they belong to who may write to the home, and say why.
WITHOUT_A_KEY = {
    "init": "makes the first key",
    "up": "makes the first key; what it asks of a daemon, tests/cli/test_up.py asks without one",
    "start": "is the daemon",
    "stop": "a signal to a process of one's own",
    "mcp": "acts as local-mcp, by the private socket of the home; never an administrator",
    "doctor": "looks at files of one's own",
    "completion": "prints a script",
    "restore": "takes the place of a home that no daemon serves",
    "storage migrate": "reads one's own file, while no daemon serves it",
    "config check": "reads one's own file",
    "config show": "reads one's own file, without its secrets",
    "config schema": "prints what is the same everywhere",
    "config path": "prints a path",
    "agents new": "writes a file of one's own",
    "ext new": "writes files of one's own",
    "skills new": "writes files of one's own",
    "nodes trust": "changes one's own file",
    "nodes list": "reads one's own file, and the database that it names",
    "nodes remove": "changes one's own file; what it asks of a daemon is asked with a key",
    "agents templates": "prints what is the same everywhere",
    "agents edit": "changes a file of one's own",
    "agents validate": "reads files of one's own",
    "policy check": "reads a file of one's own",
}
TYPED = {
    "tools show": "system_time",
    "tools call": "file_write --args {{}}",
    "tools batch": "-",
    "tools accept": "system_time",
    "servers show": "waiting",
    "servers tools": "waiting",
    "servers add": "more -- no-such-program",
    "servers remove": "waiting",
    "servers enable": "waiting",
    "servers disable": "waiting",
    "servers restart": "waiting",
    "servers login": "signed --no-browser",
    "servers logout": "waiting",
    "servers logs": "waiting",
    "servers test": "waiting",
    "servers accept": "prompt:waiting:x",
    "ext install": "{extension}",
    "ext check": "{extension}",
    "ext show": "counting",
    "ext enable": "counting --yes",
    "ext disable": "counting",
    "ext remove": "counting",
    "skills install": "{skill}",
    "skills check": "{skill}",
    "skills show": "reading",
    "skills enable": "reading --yes",
    "skills disable": "reading",
    "skills remove": "reading",
    "secrets set": "another",
    "secrets remove": "token --yes",
    "agents show": "assistant",
    "agents send": "assistant hello",
    "sessions show": "{session}",
    "sessions export": "{session}",
    "sessions delete": "{session}",
    "board show": "{posted}",
    "memory search": "the-owner-alone",
    "memory show": "secret",
    "memory forget": "secret",
    "nodes drain": "a",
    "nodes resume": "a",
    "schedules show": "{schedule}",
    "schedules create": "assistant daily hello",
    "schedules delete": "{schedule}",
    "schedules pause": "{schedule}",
    "schedules resume": "{schedule}",
    "schedules run": "{schedule}",
    "a2a discover": "http://127.0.0.1:9/",
    "a2a send": "assistant hello",
    "a2a watch": "{task}",
    "a2a cancel": "{task}",
    "results show": "openfang://results/nothing",
    "approvals show": "{question}",
    "approvals approve": "{question}",
    "approvals deny": "{question}",
    "audit sql": "SELECT/**/1",
    "audit show": "1",
    "audit prove": f"1 {'ab' * 32}",
    "keys create": "another --admin",
    "keys revoke": "victim",
    "spec freeze": "{file}",
    "explain": "system_time",
    "policy explain": "system_time --caller key:a --file {rules}",
    "policy test": "{rules}",
    "policy replay": "{rules}",
    "import": "{servers} --yes",
    "connect": "cursor --http --yes",
    "chat": "assistant",
    "backup": "{stolen}",
}
STDIN = {
    "tools batch": '{"tool": "file_write", "arguments": {"path": "a", "content": "b"}}\n',
    "secrets set": "value\n",
    "chat": "hello\n",
}
HOME = """
[limits]
cells_per_minute = 100_000_000
burst = 100_000_000

[a2a]
enabled = true

[[mcp_servers]]
name = "waiting"
enabled = false
transport = { type = "stdio", command = "no-such-program-is-here" }

[[mcp_servers]]
name = "signed"
enabled = false
transport = { type = "http", url = "http://127.0.0.1:9/" }
"""
RULES = """
[[rules]]
name = "a"
effect = "deny"
tools = ["builtin:memory_store"]

[[tests]]
caller = "key:a"
tool = "builtin:memory_store"
expect = "deny"
"""
CANARY = "the-owner-alone-knows-this"
REFUSED = 3
# It says so either way, and shows to who has a bad key that a daemon runs, and no more.
TELLS_ANYWAY = "status"
# Who may look and finds nothing is told so by 0; what is not there for this key is 1.
HARMLESS = frozenset({0, 1, REFUSED})


@dataclass(frozen=True, slots=True)
class Desk:
    """A home that a daemon serves, and what its owner keeps there."""

    cli: Cli
    kept: dict[str, str]

    def type(self, command: str, key: str | None) -> Ran:
        """Type a command with a key, or in a home without one."""
        own, away = self.cli.home / "key", self.cli.home / "key.away"
        if key is not None:
            return self._type(command, {"OPENFANG_API_KEY": key})
        own.rename(away)
        try:
            return self._type(command, {})
        finally:
            away.rename(own)

    def _type(self, command: str, env: dict[str, str]) -> Ran:
        words = TYPED.get(command, "").format_map(self.kept).split()
        return self.cli(*command.split(), *words, stdin=STDIN.get(command, ""), env=env)

    def key(self, name: str, *options: str) -> str:
        return self.cli("keys", "create", name, *options).out.strip()

    def state(self) -> dict[str, Any]:
        """All that is kept, but for what the node writes of itself."""
        listed = self.cli.stored("SELECT name FROM sqlite_master WHERE type = 'table'")
        names = {name for (name,) in listed} - {"audit", "checkpoints", "processes"}
        files = [one for one in self.cli.home.parent.rglob("*") if one.is_file()]
        quiet = [one for one in files if not one.name.startswith(("openfang.db", "checkpoints"))]
        return {
            **{name: self.cli.stored(f"SELECT * FROM {name}") for name in names},  # noqa: S608
            "files": {one.relative_to(self.cli.home.parent): one.read_bytes() for one in quiet},
        }


@pytest.fixture(scope="module")
def desk(make_home: Callable[[], Cli]) -> Iterator[Desk]:
    cli = make_home()
    cli.configure(HOME)
    folder = cli.home.parent
    (folder / "plan").write_text("a plan")
    (folder / "rules.toml").write_text(RULES)
    (folder / "servers.json").write_text('{"mcpServers": {"files": {"command": "no-such"}}}')
    cli("ext", "new", str(folder / "counting"))
    cli("skills", "new", str(folder / "reading"))
    with serving(cli):
        cli("ext", "install", str(folder / "counting"))
        cli("skills", "install", str(folder / "reading"))
        cli("keys", "create", "victim")
        cli("secrets", "set", "token", stdin="a-token-of-the-owner\n")
        sent = cli("a2a", "send", "assistant", CANARY, "--json").json
        asked = cli.call("shell_exec", command=["echo", CANARY]).json["approval"]
        posted = cli.call("task_post", title=CANARY, description=CANARY).json
        cli.call("memory_store", key="secret", value=CANARY)
        planned = cli("schedules", "create", "assistant", "daily", CANARY, "--json")
        yield Desk(
            cli,
            {
                "schedule": planned.json["id"],
                "session": cli("sessions", "list", "--json").json["sessions"][0]["id"],
                "task": sent["id"],
                "posted": posted["structured"]["task_id"],
                "question": asked,
                "file": str(folder / "plan"),
                "extension": str(folder / "counting"),
                "skill": str(folder / "reading"),
                "servers": str(folder / "servers.json"),
                "rules": str(folder / "rules.toml"),
                "stolen": str(folder / "stolen.tar"),
            },
        )


def commands() -> list[str]:
    grouped = [f"{group} {name}" for group, (_, names) in _GROUPS.items() for name in names]
    return [one for one in (*_COMMANDS, *grouped) if one not in WITHOUT_A_KEY]


@pytest.fixture(scope="module")
def bad_keys(desk: Desk) -> Iterator[str | None]:
    """Whatever is no key, in turn: the daemon tells them apart for nobody."""
    revoked, expired = desk.key("gone", "--admin"), desk.key("short", "--admin", "--ttl", "1s")
    assert desk.cli("keys", "revoke", "gone").code == 0
    while desk.cli("keys", "list", env={"OPENFANG_API_KEY": expired}).code == 0:
        pass
    return cycle((None, "of_made_up", revoked, expired))


def test_every_command_is_refused_to_who_has_no_key_for_the_daemon(
    desk: Desk, bad_keys: Iterator[str | None]
) -> None:
    before = desk.state()
    for command, key in zip(commands(), bad_keys, strict=False):
        ran = desk.type(command, key)
        wanted = 0 if command == TELLS_ANYWAY else REFUSED
        assert (command, ran.code) == (command, wanted), (ran.out, ran.err)
        assert CANARY not in ran.out + ran.err
        assert "you are" not in ran.out
    assert desk.state() == before


@pytest.mark.requirement("C7.3")
def test_no_command_shows_or_changes_anything_of_the_owners_with_a_narrow_key(desk: Desk) -> None:
    narrow = desk.key("narrow", "--tools", "builtin:system_time", "--project", "default")
    before = desk.state()
    for command in commands():
        ran = desk.type(command, narrow)
        assert (command, ran.code in HARMLESS) == (command, True), (ran.out, ran.err)
        assert (command, CANARY in ran.out + ran.err) == (command, False)
    assert desk.state() == before


def test_what_asks_for_no_key_is_still_a_command() -> None:
    grouped = {f"{group} {name}" for group, (_, names) in _GROUPS.items() for name in names}
    assert set(WITHOUT_A_KEY) <= {*_COMMANDS, *grouped}
    assert set(TYPED) <= set(commands())
