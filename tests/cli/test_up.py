"""`openfang up`: from nothing to a governed call, with the files of real programs around it."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
import tomllib
from codecs import getincrementaldecoder
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.clients import HEADER, TOKEN, write_clients
from tests.cli.conftest import Cli
from tests.cli.test_output import plain

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from tests.cli.conftest import Ran

pytestmark = pytest.mark.requirement("C19.1")

SECONDS = 60
WORDS = ("cursor", "vscode", "claude-desktop", "claude-code", "windsurf", "codex", "gemini", "zed")
ACCEPTED = {"notes", "weather", "shop", "docs", "older", "folder"}
WAITING = {"remote", "sums", "search", "plans", "bank"}
# A command that has the terminal on its standard input as its own: Ctrl-C reaches it.
_CONTROLLED = (
    *(sys.executable, "-c"),
    """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
""",
)
TURNCOAT = Path(__file__).with_name("turncoat.py")


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody without a home of ours, in a folder of theirs, with the `files` of their clients."""

    cli: Cli
    folder: Path
    files: Mapping[str, Path]

    def up(self, *options: str, env: Mapping[str, str] | None = None) -> Ran:
        return self.cli("up", *options, env=env)

    def configuration(self) -> dict[str, Any]:
        return tomllib.loads((self.cli.home / "config.toml").read_text())

    def servers(self) -> dict[str, Any]:
        return {one["name"]: one for one in self.configuration().get("mcp_servers", [])}

    def wired(self, word: str) -> dict[str, str]:
        """How a client is wired, by what `connect` says of its file."""
        listed = {one["file"]: one for one in self.cli("connect", "--json").json}
        return listed[str(self.files[word])]["connected"]

    def contents(self) -> dict[str, bytes]:
        return {word: file.read_bytes() for word, file in self.files.items()}


@pytest.fixture
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Person]:
    """Who has used no other program yet."""
    folder = tmp_path / "person" / "project"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    cli = Cli(tmp_path / "person" / "home", tmp_path / "pycache")
    yield Person(cli, folder, {})
    if cli.home.exists():
        cli("stop", "--kill")


@pytest.fixture
def person(nobody: Person) -> Person:
    """Who has used all of them."""
    return Person(nobody.cli, nobody.folder, write_clients(nobody.cli.home.parent, nobody.folder))


class Terminal:
    """A command at a terminal, whose questions are answered as they come."""

    def __init__(self, person: Person, *arguments: str, columns: int = 100) -> None:
        self._ours, theirs = pty.openpty()
        environment = {"COLUMNS": str(columns), "TERM": "xterm-256color"}
        self.running = subprocess.Popen(
            [*_CONTROLLED, *person.cli.command(*arguments)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=person.cli.environment(environment),
        )
        os.close(theirs)
        self.shown = ""
        self._decoder = getincrementaldecoder("utf-8")()

    def until(self, words: str) -> str:
        """Read until it says this; gives what it said since the last time."""
        start, deadline = len(self.shown), time.monotonic() + SECONDS
        while words not in self.shown[start:]:
            assert select.select([self._ours], [], [], deadline - time.monotonic())[0], self.shown
            self._take(os.read(self._ours, 65_536))
        return plain(self.shown[start:])

    def look(self) -> None:
        """Read what is there: a program that draws waits for whoever looks at its terminal."""
        while select.select([self._ours], [], [], 0)[0]:
            self._take(os.read(self._ours, 65_536))

    def _take(self, chunk: bytes) -> None:
        """A piece may end in the middle of a character."""
        self.shown += self._decoder.decode(chunk).replace("\r\n", "\n")

    def answer(self, word: str) -> None:
        os.write(self._ours, word.encode())

    def interrupt(self) -> int:
        """Press Ctrl-C, and again where it came a moment before somebody was listening."""
        self.answer("\x03")
        return self.end(again="\x03")

    def end(self, again: str = "") -> int:
        """Read the rest; gives the exit code. What is silent meanwhile is told it `again`."""
        deadline = time.monotonic() + SECONDS
        try:
            while chunk := self._more(again, deadline):
                self._take(chunk)
        except OSError:  # the other end is closed
            pass
        os.close(self._ours)
        return self.running.wait(SECONDS)

    def _more(self, again: str, deadline: float) -> bytes:
        while not select.select([self._ours], [], [], 3.0)[0]:
            assert time.monotonic() < deadline, self.shown
            self.answer(again)
        return os.read(self._ours, 65_536)


def test_one_command_goes_from_nothing_to_three_verdicts_in_a_minute(nobody: Person) -> None:
    begun = time.monotonic()
    ran = nobody.up("--json")
    assert time.monotonic() - begun < SECONDS
    assert (ran.code, ran.err, ran.out.count("\n")) == (0, "", 1)
    body = ran.json
    assert body["home"] == {"path": str(nobody.cli.home), "made": True}
    assert (body["daemon"]["started"], body["changed"]) == (True, True)
    assert (body["servers"], body["clients"]) == ([], [])
    allowed, denied, asks = body["demo"]
    assert (allowed["tool"], allowed["verdict"]) == ("system_time", "allowed")
    assert (denied["tool"], denied["verdict"]) == ("web_fetch", "denied")
    assert (asks["tool"], asks["verdict"]) == ("shell_exec", "asks")
    assert "A secret must not leave this machine" in denied["reason"]
    events = {one["audit_id"]: one for one in nobody.cli("audit", "search", "--json").lines}
    found = [events[one["audit"]]["event_type"] for one in body["demo"]]
    assert found == ["tool_invocation_start", "policy_violation", "approval_requested"]
    assert {events[one["audit"]]["context"]["caller"] for one in body["demo"]} == {
        "agent:assistant"
    }
    assert nobody.cli("audit", "verify").code == 0


def test_the_call_that_asks_is_made_when_a_person_agrees(nobody: Person) -> None:
    *_, asks = nobody.up("--json").json["demo"]
    assert nobody.cli("approvals", "approve", asks["question"]).code == 0
    answered = nobody.cli("agents", "send", "assistant", asks["said"])
    assert answered.code == 0, answered.err
    assert re.search(r"20\d\d", answered.out)


def test_a_second_run_changes_nothing_and_says_so(person: Person) -> None:
    assert person.up("--yes").code == 0
    before = person.contents(), (person.cli.home / "config.toml").read_bytes()
    records = person.cli.stored("SELECT count(*) FROM audit")
    again = person.up("--yes")
    assert again.code == 0, again.err
    assert "Everything is up already: nothing was changed." in again.out
    assert "The three calls were shown before: openfang up --demo" in again.err
    assert f"runs already: process {person.cli('status', '--json').json['pid']}" in again.out
    assert (person.contents(), (person.cli.home / "config.toml").read_bytes()) == before
    assert person.cli.stored("SELECT count(*) FROM audit") == records
    body = person.up("--yes", "--json").json
    assert (body["changed"], body["demo"]) == (False, [])
    assert {one["name"] for one in body["servers"] if one["waits"]} == WAITING


@pytest.mark.requirement("C2.3", "C11.4", "C18.3")
def test_a_yes_takes_over_what_every_program_has_and_accepts_what_is_not_critical(
    person: Person,
) -> None:
    ran = person.up("--yes", "--json", "--no-connect")
    assert ran.code == 0, ran.err
    found = {one["name"]: one for one in ran.json["servers"] if not one["skipped"]}
    assert {name for name, one in found.items() if one["accepted"]} == ACCEPTED
    assert {name for name, one in found.items() if one["taken"] and one["waits"]} == WAITING
    assert {name for name, one in person.servers().items() if one["enabled"]} == ACCEPTED
    assert found["bank"]["critical"] == ["create_payment"]
    assert found["remote"]["way_out"]
    assert (found["notes"]["tools"], found["notes"]["plain_secrets"]) == (2, 1)
    assert 0 < found["weather"]["schema_tokens"] < found["notes"]["schema_tokens"]
    (copy,) = [one for one in ran.json["servers"] if one["duplicate_of"]]
    assert (copy["from"], copy["duplicate_of"]) == ("Cursor", "notes")
    inside = [file for file in person.cli.home.rglob("*") if file.is_file()]
    assert not [
        file
        for file in inside
        for secret in (TOKEN, HEADER)
        if secret.encode() in file.read_bytes()
    ]
    assert person.servers()["notes"]["env"] == {"NOTES_TOKEN": "${MCP_NOTES_NOTES_TOKEN}"}
    assert TOKEN not in ran.out
    connected = {one["name"] for one in person.cli("servers", "list", "--json").json["connected"]}
    assert connected == ACCEPTED
    assert person.cli.call("mcp_notes_get_note", text="a").json["outcome"] == "ok"
    assert person.cli("servers", "enable", "bank").code == 0


@pytest.mark.requirement("C2.3")
def test_each_program_is_read_as_it_writes(person: Person) -> None:
    person.up("--yes", "--no-connect", "--no-demo", env={"SUMS_TOKEN": TOKEN, "SEARCH_KEY": "a"})
    found = person.servers()
    assert found["sums"]["env"] == {"SUMS_TOKEN": "${SUMS_TOKEN}"}
    assert (found["sums"]["enabled"], found["sums"]["allow_tools"]) == (True, ["get_sum"])
    assert found["search"]["env"] == {"SEARCH_KEY": "${SEARCH_KEY}"}
    assert found["older"]["transport"] == {
        "type": "stdio",
        "command": sys.executable,
        "args": [found["docs"]["transport"]["args"][0], "tools=read_older"],
    }
    assert found["bank"]["env"] == {"BANK_LEVEL": "debug"}


@pytest.mark.requirement("C11.4")
def test_a_server_that_shows_a_critical_tool_only_when_it_is_accepted_is_let_go(
    nobody: Person,
) -> None:
    entry = {"command": sys.executable, "args": [str(TURNCOAT)]}
    file = nobody.cli.home.parent / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"mcpServers": {"turncoat": entry}}))
    (found,) = nobody.up("--yes", "--json", "--no-connect", "--no-demo").json["servers"]
    assert (found["taken"], found["accepted"]) == (True, False)
    assert "CRITICAL risk: create_payment" in found["waits"]
    assert nobody.servers()["turncoat"]["enabled"] is False


@pytest.mark.requirement("C4.9")
def test_every_client_is_wired_and_restored_to_the_byte(person: Person) -> None:
    before = person.contents()
    ran = person.up("--yes", "--json", "--no-demo")
    wired = {one["client"]: one for one in ran.json["clients"]}
    assert len(wired) == len(WORDS)
    assert all(one["done"] and one["wired"] and one["backup"] for one in wired.values())
    assert not {word for word, content in person.contents().items() if content == before[word]}
    assert person.configuration()["toolsets"]["servers"] == {"tools": ["mcp:*", "ext:*"]}
    assert TOKEN not in ran.out
    assert [person.wired(word) for word in WORDS] == [{"openfang": "stdio"}] * len(WORDS)
    for word in WORDS:
        assert person.cli("connect", word, "--undo", "--yes").code == 0
    assert person.contents() == before


@pytest.mark.requirement("C4.9")
def test_a_wired_client_reaches_the_tools_that_were_taken_over(person: Person) -> None:
    person.up("--yes", "--no-demo")
    arguments = {"name": "mcp_notes_get_note", "arguments": {"text": "governed"}}
    answer = asked(person, "tools/call", arguments)
    assert answer["content"][0]["text"] == "governed"
    called = person.cli("audit", "search", "--tool", "mcp:notes:get_note", "--json").lines
    assert {one["context"]["caller"] for one in called} == {"local-mcp"}


@pytest.mark.requirement("C6.3")
def test_a_wired_client_is_offered_what_is_installed_later(person: Person) -> None:
    person.up("--yes", "--no-import", "--no-demo")
    for kind, name in (("ext", "word-tools"), ("skills", "reading-time")):
        assert person.cli(kind, "new", str(person.folder / name)).code == 0
        assert person.cli(kind, "install", str(person.folder / name)).code == 0
        assert person.cli(kind, "enable", name, "--yes").code == 0
    offered = {one["name"] for one in asked(person, "tools/list", {})["tools"]}
    assert offered >= {"count_words", "reading_time", "skill_reading_time"}
    (prompt,) = asked(person, "prompts/list", {})["prompts"]
    assert prompt["name"] == "skill_reading_time"


def asked(person: Person, method: str, params: dict[str, Any]) -> Any:
    """Ask the node as a wired client does: by the entry in its file."""
    entry = json.loads(person.files["gemini"].read_text())["mcpServers"]["openfang"]
    who = {"clientInfo": {"name": "gemini", "version": "1"}, "capabilities": {}}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", **who}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": method, "params": params},
    ]
    ran = subprocess.run(
        [entry["command"], *entry["args"]],
        input="".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in messages),
        env={"PATH": os.environ["PATH"], "HOME": str(person.cli.home.parent), **entry["env"]},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    return json.loads(ran.stdout.splitlines()[-1])["result"]


@pytest.mark.requirement("C2.3", "C4.9", "C11.4")
def test_without_a_terminal_nothing_is_asked_and_nothing_of_the_persons_is_changed(
    person: Person,
) -> None:
    before = person.contents()
    ran = person.up()
    assert ran.code == 0, ran.err
    assert "[y/N]" not in ran.out + ran.err
    lines = ran.out.splitlines()
    (head,) = [number for number, line in enumerate(lines) if line.startswith("SERVER")]
    assert lines[head].split() == [
        *("SERVER", "FROM", "VIA", "SECRET", "DUPLICATE", "REACHED", "TOOLS", "TOKENS")
    ]
    rows = [line.split() for line in lines[head + 1 : lines.index("", head)]]
    assert len(rows) == len(ACCEPTED | WAITING) + 1
    assert ["notes", "Cursor", "stdio", "plain", "yes"] in rows
    assert ["remote", "Cursor", "http", "plain", "no", "no"] in rows
    assert ["folder", "this", "folder", "stdio", "no", "no", "untried"] in rows
    for told in ("Nothing was taken over. Do it: openfang up --yes", "Nothing was written."):
        assert told in ran.err
    assert "bank: it has a tool of CRITICAL risk: create_payment" in ran.err.replace(
        "left out: startup_timeout_sec; ", ""
    )
    assert (person.servers(), person.contents()) == ({}, before)
    assert not (person.cli.home / "servers" / "folder").exists(), "it was started"
    assert TOKEN not in ran.out + ran.err


def test_at_a_terminal_a_person_is_asked_for_each_change(person: Person) -> None:
    terminal = Terminal(person, "up", columns=80)
    shown = terminal.until("[y/N] ")
    assert "Take these 11 servers over, and accept what was reached?" in shown
    table = shown.partition("MCP servers of other programs:\n")[2].partition("\nbank:")[0]
    assert max(len(line) for line in table.splitlines() if "/" not in line) <= 80
    assert re.search(r"notes +Claude Desktop +stdio +plain +no +yes +2 +\d+", shown)
    terminal.answer("y\n")
    shown = terminal.until("Write this? [y/N] ")
    assert "Taken over and accepted: notes" in shown
    assert "openfang servers enable" in shown
    assert '+    "openfang": {' in shown
    terminal.answer("y\n")
    for _ in WORDS[1:]:
        terminal.until("Write this? [y/N] ")
        terminal.answer("n\n")
    assert terminal.end() == 0
    shown = plain(terminal.shown)
    for verdict in ("ALLOWED  what time", "DENIED   fetch", "ASKS     run date"):
        assert verdict in shown
    assert shown.count("audit ") >= 3
    assert "openfang approvals approve ask_" in shown
    assert [word for word in WORDS if person.wired(word)] == ["cursor"]


def test_ctrl_c_leaves_everything_whole_and_the_next_run_goes_on(person: Person) -> None:
    before = person.contents()
    terminal = Terminal(person, "up")
    terminal.until("[y/N] ")
    assert terminal.interrupt() == 130
    assert "What was done stays, and is whole; go on: openfang up" in plain(terminal.shown)
    assert (person.servers(), person.contents()) == ({}, before)
    body = person.up("--yes", "--json").json
    assert {one["name"] for one in body["servers"] if one["accepted"]} == ACCEPTED
    assert (body["daemon"]["started"], len(body["demo"])) == (False, 3)


def test_who_stops_it_while_servers_are_taken_over_finds_them_whole(person: Person) -> None:
    assert person.up("--no-import", "--no-connect", "--no-demo").code == 0
    terminal = Terminal(person, "up", "--yes", "--no-connect", "--no-demo")
    deadline = time.monotonic() + SECONDS
    while len(person.servers()) < 3:
        terminal.look()
        assert time.monotonic() < deadline
    assert terminal.interrupt() in {0, 130}
    assert person.cli("config", "check").code == 0
    begun = {name for name, one in person.servers().items() if one["enabled"]}
    again = person.up("--yes", "--no-connect", "--no-demo")
    assert again.code == 0, again
    found = person.servers()
    assert set(found) == ACCEPTED | WAITING
    accepted = {name for name, one in found.items() if one["enabled"]}
    assert begun <= accepted <= ACCEPTED
    assert len(ACCEPTED - accepted) <= 1, "only the one at which it was stopped may wait"


@pytest.mark.requirement("C18.3", "C11.4")
def test_a_stored_secret_reaches_no_server_by_a_yes_to_all(person: Person) -> None:
    person.up("--no-import", "--no-connect", "--no-demo")
    person.cli("secrets", "set", "SEARCH_KEY", stdin="of-the-owner-123\n")
    body = person.up("--yes", "--no-connect", "--no-demo", "--json").json
    (search,) = [one for one in body["servers"] if one["name"] == "search"]
    assert (search["reachable"], search["taken"], search["accepted"]) == (None, True, False)
    assert search["waits"] == "it would be given the stored secret SEARCH_KEY"
    assert not (person.cli.home / "servers" / "search").exists(), "it was started"


def test_who_changed_nothing_is_not_told_that_everything_is_up(nobody: Person) -> None:
    assert nobody.up("--no-demo").code == 0
    words = ["-c", "import sys; sys.exit('no token was given')"]
    entry = {"command": sys.executable, "args": words}
    file = nobody.cli.home.parent / ".cursor/mcp.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"mcpServers": {"shy": entry}}))
    ran = nobody.up("--no-demo")
    assert "Nothing was changed." in ran.out
    assert "Everything is up already" not in ran.out
    assert "shy: not reached: It ended with exit code 1: no token was given (its last" in ran.err


def test_what_is_wrong_with_one_file_keeps_no_other_out(person: Person) -> None:
    person.files["cursor"].write_text('{"mcpServers": {')
    ran = person.up("--yes", "--no-demo")
    assert ran.code == 1
    assert f"not read: {person.files['cursor']}" in ran.err
    assert "Cursor is left alone" in ran.err
    assert "notes" in person.servers()
    assert person.files["cursor"].read_text() == '{"mcpServers": {'
    assert '"openfang"' in person.files["gemini"].read_text()


def test_parts_are_left_out_on_request(person: Person) -> None:
    before = person.contents()
    body = person.up("--yes", "--no-import", "--no-connect", "--no-demo", "--json").json
    assert set(body) == {"home", "daemon", "warnings", "changed"}
    assert (person.servers(), person.contents()) == ({}, before)
    again = person.up("--no-import", "--no-connect", "--demo", "--json").json
    assert [one["verdict"] for one in again["demo"]] == ["allowed", "denied", "asks"]
    for wrong in (("--demo", "--no-demo"), ("--foreground", "--json")):
        assert person.up(*wrong).code == 2


def test_what_runs_already_is_not_served_here_again(nobody: Person) -> None:
    assert nobody.up("--no-demo").code == 0
    refused = nobody.up("--foreground")
    assert refused.code == 1
    assert "serves" in refused.err
    assert "way out: openfang up without --foreground" in refused.err


@pytest.mark.requirement("C12.1", "C18.1")
def test_who_has_no_key_for_the_daemon_takes_nothing_over(person: Person) -> None:
    person.up("--no-import", "--no-connect", "--no-demo")
    narrow = person.cli("keys", "create", "narrow", "--tools", "builtin:system_time").out.strip()
    before = person.contents(), (person.cli.home / "config.toml").read_bytes()
    for key in ("of_made_up", narrow):
        ran = person.up("--yes", env={"OPENFANG_API_KEY": key})
        assert ran.code == 3, ran.out
        assert (person.contents(), (person.cli.home / "config.toml").read_bytes()) == before


def test_another_model_is_not_asked_for_the_demonstration(nobody: Person) -> None:
    nobody.up("--no-demo")
    manifest = nobody.cli.home / "agents" / "assistant" / "agent.toml"
    manifest.write_text(
        manifest.read_text().replace('provider = "default"', 'provider = "ollama"\nmodel = "x"')
    )
    nobody.cli("stop")
    ran = nobody.up()
    assert ran.code == 0, ran.err
    assert "The three calls are not shown: assistant thinks with" in ran.err
