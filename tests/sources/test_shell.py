"""What a program that `shell_exec` starts reaches: its workspace, and what the operator opened."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from anyio import to_thread

from openfang.app.confine import Confiner
from openfang.core.calls import Grants
from openfang.core.errors import Parked
from openfang.core.keys import Scope, Way
from openfang.host.backends import Missing
from openfang.testing import OpenApp, open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

pytestmark = [pytest.mark.requirement("C16.1", "C16.2"), pytest.mark.needs("bwrap")]

PROGRAMS = 'programs = ["cat", "cp", "env", "ls", "python3", "true"]\n'
# What a program is told by the proxy it was led to.
ASK = """
import sys, urllib.error, urllib.request
try:
    urllib.request.urlopen("http://example.com/", timeout=10)
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
except OSError as error:
    print("no way out:", error)
"""


@asynccontextmanager
async def shell(folder: Path, *lines: str) -> AsyncGenerator[OpenApp]:
    """An app whose administrator has a standing approval for `shell_exec`."""
    config = "\n".join(["[tools.shell_exec]", PROGRAMS, *lines])
    async with open_test_app(folder, config=config) as app:
        with pytest.raises(Parked) as caught:
            await app.call("shell_exec", command="true")
        await app.parts.approvals.answer(
            caught.value.question_id, approve=True, by=app.caller.id, via=Way.API, scope=Scope.RULE
        )
        yield app


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "secret").write_text("a secret")
    return folder / "secret"


async def test_naming_a_file_does_not_open_it(tmp_path: Path, secret: Path) -> None:
    """The words come from a model: unlike an operator's they open nothing."""
    async with shell(tmp_path / "home") as app:
        for path in (
            secret,
            secret.parent,
            tmp_path / "home/config.toml",
            "/etc/shadow",
            "/root/.ssh",
        ):
            result = await app.call("shell_exec", command=["ls", str(path)])
            assert result.is_error, path
        result = await app.call("shell_exec", command=["cp", "/etc/hosts", str(secret)])
        assert result.is_error
    assert await to_thread.run_sync(secret.read_text) == "a secret"


async def test_the_operator_opens_paths_to_read_and_to_write(tmp_path: Path, secret: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    opened = (f'fs_read = ["{secret.parent}"]', f'fs_write = ["{out}"]')
    async with shell(tmp_path / "home", *opened) as app:
        read = await app.call("shell_exec", command=["cat", str(secret)])
        kept = await app.call("shell_exec", command=["cp", "/etc/hosts", str(secret)])
        await app.call("shell_exec", command=["cp", str(secret), str(out / "copy")])
    assert read.structured["stdout"] == "a secret"
    assert kept.is_error
    assert await to_thread.run_sync((out / "copy").read_text) == "a secret"


async def test_a_program_reaches_no_network_unless_the_operator_says_so(tmp_path: Path) -> None:
    async with shell(tmp_path / "home") as app:
        closed = await app.call("shell_exec", command=["python3", "-c", ASK])
    assert "no way out" in closed.structured["stdout"]


async def test_with_a_network_it_reaches_what_the_caller_was_granted(tmp_path: Path) -> None:
    async with shell(tmp_path / "home", "network = true") as app:
        grants = Grants(tools=("*",), shell=("*",), network=("example.org",))  # noqa: S604 - a grant
        limited = replace(app.caller, grants=grants)
        call = app.make("shell_exec", {"command": ["python3", "-c", ASK]}, caller=limited)
        told = await app.invoke(call)
    assert "403" in told.structured["stdout"]
    assert "not_granted" in told.structured["stdout"]


async def test_what_has_to_be_sandboxed_does_not_run_where_it_cannot_be(tmp_path: Path) -> None:
    async with shell(tmp_path / "home", 'sandbox = "required"') as app:
        app.parts.confiner = Confiner(tmp_path / "home", tmp_path, Missing("there is none"))
        refused = await app.call("shell_exec", command="true")
    assert refused.is_error
    assert "required" in refused.text


async def test_without_a_sandbox_it_runs_as_we_do(tmp_path: Path, secret: Path) -> None:
    async with shell(tmp_path / "home", 'sandbox = "off"') as app:
        read = await app.call("shell_exec", command=["cat", str(secret)])
    assert read.structured["stdout"] == "a secret"
