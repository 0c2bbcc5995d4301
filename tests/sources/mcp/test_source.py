"""Servers as sources, from the configuration to the answer: supervised, replaced, contained."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.node import NODE

from openfang.config.load import load
from openfang.core.errors import CallTimedOut, OpenFangError, SourceFailed
from openfang.testing import OpenApp, open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from openfang.app.servers.running import Servers

pytestmark = pytest.mark.requirement("C3.2")
PEER = Path(__file__).parent / "peers" / "listed.py"
ECHO_MATH = Path(__file__).parents[3] / "docs/examples/servers/echo-math/index.js"


def server(
    name: str,
    *more: str,
    program: str = sys.executable,
    script: Path = PEER,
    sandbox: str = "off",
) -> str:
    """One server of the configuration, whose tools are taken for harmless."""
    lines = (f'name = "{name}"', 'trust = "high"', 'risk = "LOW"', f'sandbox = "{sandbox}"', *more)
    reached = f'transport = {{ type = "stdio", command = "{program}", args = ["{script}"] }}'
    return "\n".join(("[[mcp_servers]]", *lines, reached, ""))


@asynccontextmanager
async def opened(folder: Path, *servers: str) -> AsyncGenerator[tuple[OpenApp, Servers]]:
    async with open_test_app(folder, config="\n".join(servers)) as app:
        assert app.parts.servers
        with anyio.fail_after(60):
            await app.parts.servers.settled()
            yield app, app.parts.servers


async def until(seen: Callable[[], object]) -> None:
    """Look until it is so; what it waits for is not announced."""
    with anyio.fail_after(30):
        while not seen():  # noqa: ASYNC110 - there is no event to wait for
            await anyio.sleep(0.01)


@pytest.mark.requirement("C3.4", "C3.8")
async def test_a_server_of_the_configuration_is_a_source_of_tools(tmp_path: Path) -> None:
    async with opened(tmp_path, server("demo")) as (app, servers):
        result = await app.call("mcp:demo:echo", text="hello")
        tool = app.parts.registry.find("mcp_demo_echo")
        assert (result.text, result.extra) == ("hello", {"x-unknown": {"kept": True}})
        assert result.content[0]["x-kept"] == 1
        assert tool
        assert tool.description == "[MCP:demo]"
        assert servers.health() == {"demo": "healthy"}


@pytest.mark.needs("bwrap")
@pytest.mark.requirement("C16.1", "C16.2")
async def test_a_server_in_the_sandbox_answers_and_sees_nothing_of_ours(tmp_path: Path) -> None:
    async with opened(tmp_path, server("demo", sandbox="required")) as (app, servers):
        assert servers.health() == {"demo": "healthy"}, servers.find("demo").health
        assert (await app.call("mcp:demo:echo", text="hello")).text == "hello"
        key = str(app.parts.home.key_file)
        assert (await app.call("mcp:demo:read", text=key)).text == "FileNotFoundError"


@pytest.mark.requirement("C3.4")
async def test_the_example_server_answers(tmp_path: Path) -> None:
    async with opened(tmp_path, server("echo-math", program=NODE, script=ECHO_MATH)) as (app, _):
        assert (await app.call("mcp:echo-math:echo", text="hello")).text == "hello"
        assert (await app.call("mcp_echo_math_multiply", a=6, b=7)).text == "42"


@pytest.mark.requirement("C2.6")
async def test_a_server_that_is_not_there_harms_nobody_else(tmp_path: Path) -> None:
    missing = server("missing", program="no-such-program")
    unset = server("unset", 'env = ["NO_SUCH_VARIABLE_IS_SET"]')
    async with opened(tmp_path, missing, unset, server("demo")) as (app, servers):
        assert (await app.call("mcp:demo:echo", text="hello")).text == "hello"
        expected = {"demo": "healthy", "missing": "unhealthy", "unset": "unhealthy"}
        assert servers.health() == expected
        assert "no-such-program" in servers.find("missing").health.error
        assert "NO_SUCH_VARIABLE_IS_SET" in servers.find("unset").health.error


@pytest.mark.requirement("C3.7")
async def test_a_server_that_dies_fails_its_call_and_comes_back(tmp_path: Path) -> None:
    async with opened(tmp_path, server("demo")) as (app, servers):
        first, source = (await app.call("mcp:demo:pid")).text, servers.find("demo")
        lost = source._connection
        with pytest.raises(SourceFailed):
            await app.call("mcp:demo:die")
        await until(lambda: source._connection not in {None, lost})
        assert (await app.call("mcp:demo:pid")).text != first
        endings = [e for e in await app.events() if e.event_type == "tool_invocation_end"]
        assert [ending.payload["outcome"] for ending in endings] == ["ok", "failed", "ok"]


@pytest.mark.requirement("C3.5")
async def test_a_server_that_hangs_is_given_up_and_goes_on(tmp_path: Path) -> None:
    async with opened(tmp_path, server("demo", "timeout_secs = 0.3")) as (app, _):
        with pytest.raises(CallTimedOut):
            await app.call("mcp:demo:hang")


@pytest.mark.requirement("C3.7")
async def test_a_call_to_a_server_that_is_gone_fails_at_once_with_its_last_error(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, server("demo")) as (app, servers):
        pid = int((await app.call("mcp:demo:pid")).text)
        os.kill(pid, signal.SIGKILL)
        await until(lambda: not servers.find("demo").connected)
        with pytest.raises(OpenFangError) as caught:
            await app.call("mcp:demo:echo", text="x")
        assert "demo" in caught.value.message


@pytest.mark.requirement("C3.6")
async def test_a_list_that_changes_is_asked_for_again(tmp_path: Path) -> None:
    async with opened(tmp_path, server("demo")) as (app, _):
        await app.call("mcp:demo:grow")
        await until(lambda: app.parts.registry.find("mcp:demo:more6"))


@pytest.mark.requirement("C2.1")
async def test_a_lazy_server_wakes_on_its_first_call_only(tmp_path: Path) -> None:
    async with open_test_app(tmp_path, config=server("demo", "lazy = true")) as app:
        servers = app.parts.servers
        assert servers
        servers.want()
        await until(lambda: servers.running.get("demo"))
        await until(lambda: servers.find("demo").health.status.value == "sleeping")
        with anyio.fail_after(30):
            await servers.settled()
        assert (await app.call("mcp:demo:echo", text="awake")).text == "awake"


@pytest.mark.requirement("C2.9")
async def test_only_the_server_that_changed_is_begun_anew_and_no_call_is_lost(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, server("same"), server("changed")) as (app, servers):
        before = [(await app.call(f"mcp:{name}:pid")).text for name in ("same", "changed")]
        answers = list[str]()

        async def keep_calling() -> None:
            for number in range(50):
                result = await app.call("mcp:changed:echo", text=str(number))
                answers.append(result.text)

        text = "\n".join((server("same"), server("changed", "timeout_secs = 20"), server("added")))
        await anyio.Path(app.parts.home.config_file).write_text(text)
        config = await anyio.to_thread.run_sync(load, app.parts.home.path, {"HOME": str(tmp_path)})
        async with anyio.create_task_group() as calls:
            calls.start_soon(keep_calling)
            await until(lambda: len(answers) > 5)
            app.parts.config = config
            servers.apply(config)
            await until(lambda: servers.find("changed").connected)
            await until(lambda: servers.find("added").connected)
        after = [(await app.call(f"mcp:{name}:pid")).text for name in ("same", "changed")]
        assert answers == [str(number) for number in range(50)]
        assert (after[0], after[1] != before[1]) == (before[0], True)
        assert (await app.call("mcp:added:echo", text="new")).text == "new"
