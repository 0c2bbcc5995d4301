"""`openfang servers login` and `logout`: a real browser's part is played by a real HTTP client."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import socket
import sys
import threading
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.cli.conftest import serving as serving_home
from tests.conformance.auth import redirected
from tests.forked import at_terminal
from tests.sources.mcp.peers.authority import Authority, Client, Protected, authority
from tests.sources.mcp.peers.web import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from pathlib import Path

    from tests.cli.conftest import Cli
    from tests.forked import Piped

pytestmark = pytest.mark.requirement("C14.1", "C18.3")
SECONDS = 60
_ADDRESS = re.compile(r"http://127\.0\.0\.1:[0-9]+/authorize\?\S+")


@contextmanager
def threaded(peer: Protected) -> Generator[str]:
    """Serve in a thread of its own."""
    ready: list[str] = []
    began, loop, end = threading.Event(), asyncio.new_event_loop(), asyncio.Event()

    async def main() -> None:
        async with serving(peer) as url:
            ready.append(url)
            began.set()
            await end.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(main(),))
    thread.start()
    assert began.wait(SECONDS)
    try:
        yield ready[0]
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join()
        loop.close()


@dataclass(frozen=True, slots=True)
class Scene:
    """A home with a server that wants a sign-in."""

    cli: Cli
    mind: Authority
    url: str

    def secrets(self) -> list[str]:
        return [text for one in self.mind.tokens for text in (one.access_token, one.refresh_token)]

    def leaks(self, *said: str) -> list[str]:
        """Where a token can be read."""
        files = [path for path in self.cli.home.rglob("*") if path.is_file()]
        texts = [*(path.read_bytes() for path in files), *(text.encode() for text in said)]
        return [one for one in self.secrets() if any(one.encode() in text for text in texts)]


@pytest.fixture
def mind() -> Iterator[Authority]:
    with authority() as one:
        yield one


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


def entry(name: str, url: str, more: str = "") -> str:
    return f"""
[[mcp_servers]]
name = "{name}"
allow_private = true
trust = "high"
transport = {{ type = "http", url = "{url}"{more} }}
"""


@pytest.fixture
def scene(mind: Authority, make_home: Callable[[], Cli]) -> Iterator[Scene]:
    with threaded(Protected(mind)) as url:
        cli = make_home()
        cli.configure(entry("guarded", url))
        yield Scene(cli, mind, url)


@dataclass(frozen=True, slots=True)
class Page:
    """What a browser is shown."""

    status: int
    text: str


def opened(url: str, host: str = "") -> Page:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=SECONDS)
    headers = {"Host": host} if host else {}
    connection.request("GET", f"{parts.path}?{parts.query}", headers=headers)
    response = connection.getresponse()
    page = Page(response.status, response.read().decode())
    connection.close()
    return page


@contextmanager
def logging_in(cli: Cli, *options: str, name: str = "guarded") -> Generator[Login]:
    words = ("servers", "login", name, "--no-browser", *options)
    with cli.start(*words) as running:
        try:
            yield Login(running)
        finally:
            running.kill()


@dataclass(frozen=True, slots=True)
class Login:
    """A command that waits for a browser."""

    running: Piped

    def address(self) -> str:
        """What it shows, to be opened in a browser."""
        assert self.running.stderr
        line = self.running.stderr.readline().decode()
        found = _ADDRESS.search(line)
        assert found, line
        return found[0]

    def end(self) -> tuple[int, str, str]:
        out, err = self.running.communicate(timeout=SECONDS)
        return self.running.returncode, out.decode(), err.decode()


def sign_in(cli: Cli) -> str:
    """Do as a person does, and give what was said."""
    with logging_in(cli) as login:
        assert opened(redirected(login.address())).status == 200
        code, out, err = login.end()
    assert code == 0, err
    return out + err


@pytest.mark.parametrize("way", ["in process", "daemon"])
def test_a_person_signs_in_calls_and_signs_out(scene: Scene, way: str) -> None:
    cli = scene.cli
    with serving_home(cli) if way == "daemon" else nullcontext():
        before = cli("servers", "test", "guarded", "--json").json
        assert before["way_out"] == "openfang servers login guarded"
        said = sign_in(cli)
        assert "guarded: signed in, connected" in said
        called = cli.call("mcp_guarded_echo", text="hello")
        assert called.json["content"][0]["text"] == "hello", called.err
        shown = cli("servers", "show", "guarded", "--json").out + cli("servers", "list").out
        assert scene.leaks(said, shown, called.out, cli("audit", "export").out) == []
        assert cli("servers", "logout", "guarded").out == "guarded: signed out\n"
        after = cli("servers", "test", "guarded", "--json").json
        assert after["way_out"] == "openfang servers login guarded"
        acts = cli.sql("SELECT payload ->> '$.act' FROM audit WHERE event = 'server_changed'")
    assert [act for act in str(acts).split("'") if act in {"login", "logout"}] == [
        "login",
        "logout",
    ]


def test_the_answer_is_one_object_for_programs(scene: Scene) -> None:
    with logging_in(scene.cli, "--json") as login:
        opened(redirected(login.address()))
        code, out, _ = login.end()
    body = json.loads(out)
    assert code == 0
    assert body["issuer"] == scene.mind.issuer
    assert (body["server"], body["scopes"], body["renewed"]) == ("guarded", ["read"], True)
    assert body["state"] == "connected"
    assert scene.leaks(out) == []


def test_only_the_answer_to_our_own_question_counts_and_only_once(scene: Scene) -> None:
    with logging_in(scene.cli) as login:
        address = redirected(login.address())
        forged = re.sub("state=[^&]+", "state=guessed", address)
        assert opened(forged).status == 400
        assert opened(address, host="evil.example").status == 400
        assert opened(f"{address}&code=another").status == 400
        assert opened(address.replace("/callback", "/else")).status == 404
        page = opened(address)
        assert (page.status, "can be closed" in page.text) == (200, True)
        code, out, _ = login.end()
    assert code == 0
    assert "connected" in out


def test_who_declines_is_not_signed_in(scene: Scene) -> None:
    scene.mind.consents = False
    with logging_in(scene.cli) as login:
        opened(redirected(login.address()))
        code, _, err = login.end()
    assert code == 1
    assert "declined" in err
    assert scene.mind.tokens == []


def test_a_sign_in_comes_back_to_the_port_that_the_operator_says(
    mind: Authority, make_home: Callable[[], Cli]
) -> None:
    port = free_port()
    mind.add(Client("known", redirects=(f"http://127.0.0.1:{port}/callback",)))
    cli = make_home()
    with threaded(Protected(mind)) as url:
        oauth = f', oauth = {{ client_id = "known", redirect_port = {port} }}'
        cli.configure(entry("guarded", url, oauth))
        assert "connected" in sign_in(cli)


def test_a_client_that_was_registered_is_used_again_at_the_same_port(scene: Scene) -> None:
    sign_in(scene.cli)
    sign_in(scene.cli)
    assert len(scene.mind.clients) == 1
    uris = [form["redirect_uri"] for path, form in scene.mind.asked if path == "/authorize"]
    assert uris[0] == uris[1]


def test_what_cannot_be_signed_in_to_says_why(scene: Scene) -> None:
    cli = scene.cli
    secret = '{ grant = "client_credentials", client_id = "robot", client_secret = "s" }'
    cli.configure(entry("robot", scene.url, f", oauth = {secret}"))
    cli.configure(entry("headed", scene.url, ', headers = { Authorization = "Bearer x" }'))
    program = f'{{ type = "stdio", command = "{sys.executable}" }}'
    cli.configure(f'[[mcp_servers]]\nname = "child"\nenabled = false\ntransport = {program}\n')
    expected = {
        "robot": "without a person",
        "headed": "has a header Authorization",
        "child": "is started by a command",
        "nobody": "No MCP server nobody is configured",
    }
    for name, words in expected.items():
        ran = cli("servers", "login", name)
        assert (ran.code, words in ran.err) == (1, True), ran.err
        assert "way out: " in ran.err


def test_a_good_token_is_sent_without_the_library_that_gets_them(scene: Scene) -> None:
    sign_in(scene.cli)
    imported = scene.cli.imported("tools", "call", "mcp_guarded_echo", "--json")
    assert "openfang.sources.mcp.oauth.sign_in" in imported
    assert not {"mcp", "httpx2", "openfang.sources.mcp.oauth.flow"} & imported


def test_at_a_terminal_the_browser_opens_by_itself(scene: Scene, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    os.mkfifo(seen)
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {seen}\n')
    browser.chmod(0o700)
    environment = scene.cli.environment({"BROWSER": str(browser)})
    with at_terminal(("servers", "login", "guarded"), environment) as (running, screen):
        address = seen.read_text().strip()  # waits until the browser writes
        assert parse_qs(urlsplit(address).query)["code_challenge_method"] == ["S256"]
        assert opened(redirected(address)).status == 200
        assert _until_closed(screen).count("signed in") == 1
        assert running.wait(SECONDS) == 0


def _until_closed(terminal: int) -> str:
    said = b""
    while True:
        try:
            more = os.read(terminal, 65_536)
        except OSError:  # the other side has gone
            return said.decode()
        if not more:
            return said.decode()
        said += more


WRONG: dict[str, tuple[str, str]] = {
    "a secret without a client": ('{ client_secret = "s" }', "client_id beside"),
    "no proof": ('{ grant = "client_credentials", client_id = "a" }', "either client_secret or"),
    "two names": (
        '{ client_id = "a", client_metadata_url = "https://a.example/b" }',
        "either client_id or client_metadata_url",
    ),
    "a key for a person": ('{ client_id = "a", private_key = "k" }', "private_key only with"),
    "a document without encryption": (
        '{ client_metadata_url = "http://a.example/b" }',
        "an https:// address with a path",
    ),
    "a blank in a scope": ('{ scopes = ["a b"] }', "a scope without blanks"),
    "an unknown grant": ('{ grant = "implicit" }', '"authorization_code"'),
}


@pytest.mark.requirement("C2.6")
@pytest.mark.parametrize("wrong", WRONG)
def test_what_makes_no_sense_in_the_entry_is_told(make_home: Callable[[], Cli], wrong: str) -> None:
    cli = make_home()
    oauth, words = WRONG[wrong]
    cli.configure(entry("guarded", "https://a.example/mcp", f", oauth = {oauth}"))
    ran = cli("config", "check")
    assert ran.code == 1
    assert words in ran.err + ran.out, ran


def test_two_ways_in_make_no_sense(make_home: Callable[[], Cli]) -> None:
    cli: Any = make_home()
    more = ', headers = { authorization = "Bearer x" }, oauth = {}'
    cli.configure(entry("guarded", "https://a.example/mcp", more))
    ran = cli("config", "check")
    assert "either oauth or a header Authorization" in ran.err + ran.out
