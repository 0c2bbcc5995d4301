"""`openfang mcp`, as a client starts it: by a daemon, by another one, and in process."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import stat
import subprocess
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.cli.conftest import Cli, serving
from tests.cli.test_processes import _until
from tests.edges.mcp.shelf import MODERN, Talker
from tests.edges.mcp.test_lines import garbled

from mcp import Client, StdioServerParameters
from openfang.app.home.new import init_home

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Mapping

pytestmark = pytest.mark.requirement("C4.1")

_SECONDS = 60
_MOST = 1 << 25
_HEAVY = (
    *("mcp", "aiohttp", "starlette", "pydantic", "anyio", "cyclopts", "rich", "uvicorn", "uvloop"),
    *("httptools", "sqlite3", "cryptography", "jsonschema_rs", "openfang.app.build"),
    *("openfang.pipeline", "openfang.sources", "openfang.edges", "openfang.agents"),
)
_IMPORTED = """
import sys
sys.argv = ["openfang", "mcp"]
from openfang.__main__ import main
try:
    main()
finally:
    print(" ".join(sys.modules), file=sys.stderr)
"""
_AGENTS = {"openfang_agent_assistant", "openfang_agent_echo"}
_LISTS = {f"notifications/{one}/list_changed" for one in ("tools", "resources", "prompts")}
_LATER = Path(__file__).with_name("later.py")
_WORK = ("--toolset", "work")
_OUTCOMES = """
SELECT json_extract(payload, '$.outcome') FROM audit WHERE event = 'tool_invocation_end'
AND json_extract(context, '$.tool') = 'mcp:later:get_later'
"""
GREETING = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n'


@dataclass
class Stdio(Talker):
    """A running `openfang mcp`."""

    process: asyncio.subprocess.Process

    async def tools(self, number: int | str) -> set[str]:
        self.ask(number, "tools/list")
        answer = await self.until(number)
        return {tool["name"] for tool in answer["result"]["tools"]}

    async def echo(self, number: int | str, message: str) -> str:
        self.call(number, "openfang_agent_echo", message=message)
        answer = await self.until(number)
        return answer["result"]["content"][0]["text"]

    async def until(self, number: int | str) -> Any:
        """The answer to a request; what is told before it is dropped."""
        while (message := await self.heard()).get("id") != number:
            assert "id" not in message, message
        return message

    async def begin(self, number: int, name: str) -> None:
        """Make a call that goes on until it is released, and see that it has begun."""
        params = {"name": "mcp_later_get_later", "arguments": {"name": name}}
        self.ask(number, "tools/call", {**params, "_meta": {"progressToken": name}})
        told = await self.heard()
        assert told.get("method") == "notifications/progress", told

    async def told_of(self, change: Callable[[Path], object], path: Path) -> float:
        """How long it takes to be told that a change has changed the tools."""
        began = anyio.current_time()
        change(path)
        assert (await self.heard())["method"] == "notifications/tools/list_changed"
        return anyio.current_time() - began

    async def ended(self) -> tuple[int, bytes]:
        """How it ended, and what it said to people."""
        assert self.process.stderr
        said = await self.process.stderr.read()
        return await self.process.wait(), said


@asynccontextmanager
async def opened(cli: Cli, *options: str, stdout: int = subprocess.PIPE) -> AsyncGenerator[Stdio]:
    with anyio.fail_after(_SECONDS):
        process = await asyncio.create_subprocess_exec(
            *cli.command("mcp", *options),
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=subprocess.PIPE,
            env=cli.environment(),
            limit=_MOST,
        )
        assert process.stdin
        try:
            yield Stdio(process.stdout or asyncio.StreamReader(), process.stdin, process)
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()


@pytest.fixture
def later(fresh: Cli) -> Cli:
    """A home with a toolset `work`, whose tool ends its calls when they are released."""
    return with_later(fresh)


def with_later(cli: Cli) -> Cli:
    fifo = cli.home.parent / "later"
    os.mkfifo(fifo)
    cli.configure(
        f"""
[[mcp_servers]]
name = "later"
sandbox = "off"
transport = {{ type = "stdio", command = "{sys.executable}", args = ["{_LATER}", "{fifo}"] }}

[toolsets.work]
servers = ["later"]
"""
    )
    return cli


@pytest.fixture(scope="module")
def served(make_home: Callable[[], Cli]) -> Iterator[Cli]:
    """A home that a daemon serves."""
    cli = with_later(make_home())
    with serving(cli):
        yield cli


def release(cli: Cli, name: str) -> None:
    (cli.home.parent / "later").write_text(f"{name}\n")


def callers(cli: Cli) -> set[str]:
    sql = (
        "SELECT json_extract(context, '$.caller') FROM audit WHERE event = 'tool_invocation_start'"
    )
    return {row[0] for row in cli.stored(sql)}


def hosts(cli: Cli) -> int:
    """How many processes have made calls on this home."""
    return cli.stored("SELECT count(*) FROM processes")[0][0]


def intact(cli: Cli) -> bool:
    verified = cli("audit", "verify", "--json")
    return verified.code == 0 and verified.json["intact"]


def cpu(pid: int) -> float:
    """The seconds that a process has computed so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# Over a daemon


async def test_a_daemon_is_found_and_used_as_local_mcp(served: Cli) -> None:
    async with opened(served) as client:
        await client.greet()
        assert await client.tools(1) == _AGENTS
        assert await client.echo(2, "hi") == "hi"
        assert not (served.home / "run" / "mcp.sock").exists()
        client.hang_up()
        assert await client.ended() == (0, b"")
    path = served.home / "run" / "daemon.sock"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert callers(served) == {"local-mcp"}
    assert hosts(served) == 1


def test_over_a_daemon_nothing_heavy_is_imported(served: Cli) -> None:
    done = subprocess.run(
        (sys.executable, "-c", _IMPORTED),
        input=GREETING,
        capture_output=True,
        env=served.environment(),
        timeout=_SECONDS,
        check=True,
    )
    assert json.loads(done.stdout)["result"]["serverInfo"]["name"] == "openfang"
    imported = set(done.stderr.decode().split())
    assert "openfang.app.stdio.pump" in imported
    assert not imported & set(_HEAVY)
    assert not [name for name in imported if name.startswith(tuple(f"{one}." for one in _HEAVY))]


def test_over_a_daemon_the_greeting_is_answered_within_three_tenths_of_a_second_of_cpu(
    served: Cli,
) -> None:
    spent: list[float] = []
    for _ in range(3):
        process = subprocess.Popen(
            served.command("mcp"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=served.environment(),
        )
        assert process.stdin
        assert process.stdout
        process.stdin.write(GREETING)
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        spent.append(cpu(process.pid))
        process.communicate(timeout=_SECONDS)
    assert min(spent) < 0.3


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_official_client_is_served_in_both_eras(served: Cli, mode: Any) -> None:
    program, *arguments = served.command("mcp")
    server = StdioServerParameters(command=program, args=arguments, env=served.environment())
    with anyio.fail_after(_SECONDS):
        async with Client(server, mode=mode) as client:
            assert client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
            assert {tool.name for tool in (await client.list_tools()).tools} == _AGENTS
            result = await client.call_tool("openfang_agent_echo", {"message": mode})
            assert [part.model_dump()["text"] for part in result.content] == [mode]


@pytest.mark.requirement("C17.1")
def test_an_unknown_toolset_or_agent_is_said_before_anything_is_answered(
    served: Cli, later: Cli
) -> None:
    for cli in (served, later):
        for options, names in ((("--toolset", "play"), "work"), (("--agent=play",), "echo")):
            ran = cli("mcp", *options, stdin=GREETING.decode())
            assert (ran.code, ran.out) == (2, "")
            assert "play" in ran.err
            assert names in ran.err


@pytest.mark.requirement("C8.1")
def test_a_call_goes_on_with_the_chain_of_who_started_it(served: Cli, fresh: Cli) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    call = {"name": "openfang_agent_echo", "arguments": {"message": "chained"}}
    ask = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
    env = {"TRACEPARENT": f"00-{trace}-b7ad6b7169203331-01", "OPENFANG_CHAIN": "agent:a,agent:b"}
    for cli in (served, fresh):
        assert "error" not in cli("mcp", stdin=json.dumps(ask), env=env).json
        (context,) = cli.stored(
            "SELECT context FROM audit WHERE event = 'tool_invocation_start'"
            " AND json_extract(payload, '$.arguments.message') = 'chained'"
        )
        assert json.loads(context[0])["trace"] == trace
        assert json.loads(context[0])["depth"] == 3


async def test_a_client_that_reads_no_more_ends_it(served: Cli) -> None:
    read, write = os.pipe()
    os.close(read)
    async with opened(served, stdout=write) as client:
        os.close(write)
        client.raw(GREETING * 3)
        assert await client.ended() == (0, b"")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_and_its_calls_in_good_order(
    served: Cli, number: signal.Signals
) -> None:
    before = served.stored(_OUTCOMES)
    async with opened(served, *_WORK) as client:
        await client.greet()
        await client.begin(1, number.name)
        with anyio.fail_after(4):  # less than what its calls would have to end
            client.process.send_signal(number)
            assert await client.ended() == (0, b"")
    _until(lambda: served.stored(_OUTCOMES) != before)
    assert served.stored(_OUTCOMES)[len(before) :] == [("cancelled",)]


def test_who_does_not_say_what_it_wants_is_turned_away(served: Cli) -> None:
    for said in (
        b"GET / HTTP/1.1\r\n\r\n",
        b"{}\n",
        b'{"openfang": {"agent": 7}}\n',
        b"x" * 100_000,
    ):
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.settimeout(_SECONDS)
            stranger.connect(os.path.relpath(served.home / "run" / "daemon.sock"))
            stranger.sendall(said)
            with stranger.makefile("rb") as answers:
                assert "refused" in json.loads(answers.readline())["openfang"]
                assert answers.read() == b""
    assert served("mcp", stdin=GREETING.decode()).json["id"] == 1


@pytest.mark.requirement("C4.3")
async def test_ten_thousand_garbled_lines_leave_the_next_request_served(served: Cli) -> None:
    chance = random.Random(7)  # noqa: S311 - the same every time
    async with opened(served) as client:

        async def write() -> None:
            for number in range(10_000):
                client.raw(garbled(chance, number))
                await client.writer.drain()
            client.raw(b"\n")
            client.ask("last", "ping")

        answers: list[Any] = []
        async with anyio.create_task_group() as group:
            group.start_soon(write)
            while not answers or answers[-1].get("id") != "last":
                message = await client.heard()
                answers += message if isinstance(message, list) else [message]
        assert len(answers) > 7000
        await client.served()
        client.hang_up()
        assert await client.ended() == (0, b"")


async def test_a_daemon_that_is_restarted_in_the_middle_is_survived(later: Cli) -> None:
    with serving(later) as daemon:
        async with opened(later, *_WORK) as client:
            await client.greet()
            await client.begin(1, "a")
            daemon.terminate()
            release(later, "a")
            answer = await client.until(1)
            assert answer["result"]["content"][0]["text"] == "a"
            client.call(2, "openfang_agent_echo", message="hi")
            daemon.wait(_SECONDS)
            with serving(later):
                answer = await client.until(2)
                assert answer["result"]["content"][0]["text"] == "hi"
                assert await client.tools(3) == {*_AGENTS, "mcp_later_get_later"}
                client.hang_up()
                assert await client.ended() == (0, b"")
    assert callers(later) == {"local-mcp"}
    assert intact(later)


async def test_a_daemon_that_is_killed_is_replaced_in_process(later: Cli) -> None:
    with serving(later) as daemon:
        async with opened(later, *_WORK) as client:
            await client.greet()
            await client.begin(1, "a")
            daemon.kill()
            client.ask(2, "tools/list")
            lost = await client.until(1)
            assert lost["error"]["code"] == -32603
            assert "may have been done" in lost["error"]["message"]
            told = [await client.heard() for _ in range(4)]
            assert {one["method"] for one in told if "method" in one} == _LISTS
            assert [one["id"] for one in told if "id" in one] == [2]
            assert (later.home / "run" / "mcp.sock").exists()
            client.hang_up()
            assert await client.ended() == (0, b"")
    assert later.stored(_OUTCOMES) == [("interrupted",)]
    assert intact(later)


# Without one


@pytest.mark.requirement("C4.2", "C4.3")
async def test_in_process_the_agents_are_served_whatever_is_sent_besides(fresh: Cli) -> None:
    async with opened(fresh) as client:
        assert (await client.greet())["serverInfo"]["name"] == "openfang"
        client.ask(1, "tools/list")
        tools = {tool["name"]: tool for tool in (await client.answer(1))["result"]["tools"]}
        assert set(tools) == _AGENTS
        assert tools["openfang_agent_echo"]["description"].startswith("Says what it is told")
        schema = tools["openfang_agent_echo"]["inputSchema"]
        assert schema["required"] == ["message"]
        assert schema["properties"]["message"]["type"] == "string"
        client.call(2, "system_time")
        assert (await client.answer(2))["error"]["code"] == -32602
        for number, counted in enumerate([True, False, True]):
            client.ask(number, "ping", counted=counted)
            answer, kind = await client.framed()
            assert (answer["id"], kind) == (number, counted)
        client.raw(b"\xef\xbb\xbf\r\n{nonsense\r\n")
        assert (await client.heard())["error"]["code"] == -32700
        client.call(8, "openfang_agent_echo", message="x" * 10_000_000)
        assert (await client.answer(8))["error"]["code"] == -32600
        client.ask(9, "server/discover", {"_meta": MODERN})
        assert "2026-07-28" in (await client.answer(9))["result"]["supportedVersions"]
        assert await client.echo(10, "hi") == "hi"
        client.hang_up()
        assert await client.over() == b""
        assert await client.ended() == (0, b"")
    assert callers(fresh) == {"local-mcp"}
    assert intact(fresh)
    assert not (fresh.home / "run" / "mcp.sock").exists()


@pytest.mark.requirement("C4.2")
async def test_what_was_in_a_batch_that_is_refused_can_be_asked_again(fresh: Cli) -> None:
    async with opened(fresh) as client:
        await client.greet()
        client.send([{"jsonrpc": "2.0", "id": one, "method": "ping"} for one in (1, 2)])
        assert (await client.heard())["error"]["code"] == -32600
        client.raw(b'{"jsonrpc":"2.0","id":2,"id":3,"method":"ping"}\n')
        assert (await client.heard())["error"]["code"] == -32600
        for number in (1, 2, 3):
            client.ask(number, "ping")
            assert (await client.answer(number))["result"] == {}


async def test_a_call_that_outlives_the_input_is_not_said_to_have_lost_its_node(
    later: Cli,
) -> None:
    async with opened(later, *_WORK) as client:
        await client.greet()
        await client.begin(1, "a")
        client.hang_up()
        answer = await client.until(1)
        assert answer["error"]["message"].startswith("The input ended")
        assert await client.ended() == (0, b"")


async def test_three_at_once_share_one_home_and_another_takes_over_when_the_first_ends(
    fresh: Cli,
) -> None:
    async def use(client: Stdio) -> None:
        await client.greet()
        for turn in range(3):
            assert await client.echo(turn, f"turn {turn}") == f"turn {turn}"

    async with opened(fresh) as one, opened(fresh) as two, opened(fresh) as three:
        async with anyio.create_task_group() as group:
            for client in (one, two, three):
                group.start_soon(use, client)
        assert hosts(fresh) == 1
        one.hang_up()
        assert await one.ended() == (0, b"")
        for client in (two, three):
            assert await client.echo("more", "hi") == "hi"
        for client in (two, three):
            client.hang_up()
        for client in (two, three):
            assert await client.ended() == (0, b"")
    assert intact(fresh)


@pytest.mark.requirement("C4.5")
async def test_another_takes_over_when_the_host_is_killed(later: Cli) -> None:
    agent = later.home / "agents" / "echo" / "agent.toml"
    async with opened(later, *_WORK) as host:
        await host.greet()
        assert await host.tools(1) == {*_AGENTS, "mcp_later_get_later"}
        async with opened(later, *_WORK) as client:
            await client.greet()
            await client.begin(1, "a")
            host.process.kill()
            lost = await client.until(1)
            assert "may have been done" in lost["error"]["message"]
            assert {(await client.heard())["method"] for _ in range(3)} == _LISTS
            assert await client.echo(2, "still") == "still"
            hidden = agent.with_suffix(".off")
            waited = [await client.told_of(agent.rename, hidden)]
            assert "openfang_agent_echo" not in await client.tools(3)
            waited.append(await client.told_of(hidden.rename, agent))
            assert "openfang_agent_echo" in await client.tools(4)
            assert min(waited) < 1
    assert later.stored(_OUTCOMES) == [("interrupted",)]
    assert intact(later)


def test_files_will_do_for_input_and_output_and_a_path_may_be_long(
    fresh: Cli, tmp_path: Path
) -> None:
    home = tmp_path / ("long" * 30) / "home"
    init_home(home, {"HOME": str(tmp_path)})
    long = Cli(home, fresh.pycache)
    call = {"name": "openfang_agent_echo", "arguments": {"message": "hi"}}
    last = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
    ran = long("mcp", stdin=GREETING.decode() + json.dumps(last))
    assert (ran.code, ran.err) == (0, "")
    assert [answer["id"] for answer in ran.lines] == [1, 2]
    assert ran.lines[1]["result"]["content"][0]["text"] == "hi"


def test_the_command_line_is_checked(fresh: Cli, tmp_path: Path) -> None:
    both = fresh("mcp", "--toolset", "a", "--agent", "b")
    assert (both.code, both.out) == (2, "")
    assert "--toolset and --agent" in both.err
    assert fresh("mcp", "--nonsense").code == 2
    shown = fresh("mcp", "--help")
    assert shown.code == 0
    assert {"--toolset", "--agent"} <= set(shown.out.split())
    env: Mapping[str, str] = {"OPENFANG_HOME": str(tmp_path / "none")}
    nowhere = fresh("mcp", env=env)
    assert (nowhere.code, nowhere.out) == (1, "")
    assert "openfang init" in nowhere.err
    fresh.configure("nonsense = 1")
    wrong = fresh("mcp", stdin=GREETING.decode())
    assert (wrong.code, wrong.out) == (1, "")
    assert "nonsense" in wrong.err
    assert "Traceback" not in wrong.err


@pytest.mark.requirement("C4.9")
def test_install_is_another_word_for_connect(fresh: Cli) -> None:
    install, connect = fresh("mcp", "install", "--help"), fresh("connect", "--help")
    assert (install.code, install.out) == (0, connect.out)
