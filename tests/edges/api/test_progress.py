"""A call that tells how far it has got, over HTTP and through a remote session."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.edges.live import live
from tests.edges.sse import Stream

from openfang.app.remote.asking import Asking
from openfang.app.remote.session import Remote
from openfang.core.errors import Parked, SourceFailed
from openfang.core.ids import Kind
from openfang.core.progress import Progress
from openfang.core.session import Options
from openfang.core.tools import Risk
from openfang.host.loopback import Loopback
from openfang.testing import TableSource

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    from tests.edges.live import Live

    from openfang.core.progress import Told

pytestmark = pytest.mark.requirement("C3.5", "C12.5")

_EVENTS = {"Accept": "application/json, text/event-stream"}


class Steps:
    """A source whose tool takes steps when it is told to."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.cancelled = asyncio.Event()
        low: dict[str, Any] = {"risk": Risk.LOW, "tags": frozenset[str]()}
        rows: dict[str, Any] = {
            "walk": (low, self._walk),
            "stand": (low, self._stand),
            "fall": (low, self._fall),
        }
        self.source = TableSource(Kind.MCP, "steps", rows)

    def _tell(self, progress: Progress) -> None:
        told = self.source.calls[-1].progress
        if told is not None:
            told(progress)

    async def _walk(self, _: Mapping[str, Any]) -> str:
        self._tell(Progress(progress=1, total=2, message="left"))
        try:
            await self.go.wait()
        except BaseException:
            self.cancelled.set()
            raise
        self._tell(Progress(progress=2, total=2, message="right"))
        return "there"

    async def _stand(self, _: Mapping[str, Any]) -> str:
        return "here"

    async def _fall(self, _: Mapping[str, Any]) -> str:
        self._tell(Progress(progress=0.5))
        await asyncio.sleep(0)
        raise SourceFailed("It fell.", way_out="get up")


@pytest.fixture
def steps() -> Steps:
    return Steps()


@pytest.fixture
async def node(tmp_path: Path, steps: Steps) -> AsyncGenerator[Live]:
    async with live(tmp_path / "home", sources=[steps.source]) as running:
        yield running


async def test_progress_comes_before_the_result_on_one_stream(node: Live, steps: Steps) -> None:
    sent = node.headers("", _EVENTS)
    url = node.at("/api/tools/mcp:steps:walk/call")
    async with node.web.post(url, json={"arguments": {}}, headers=sent) as response:
        assert response.content_type == "text/event-stream"
        stream = Stream(response)
        first = await stream.next()
        assert first
        assert (first.kind, first.data) == (
            "progress",
            {"progress": 1, "total": 2, "message": "left"},
        )
        steps.go.set()
        second, last = await stream.next(), await stream.next()
        assert second
        assert second.data["message"] == "right"
        assert last
        assert last.kind == "result"
        assert last.data["outcome"] == "ok"
        assert last.data["content"][0]["text"] == "there"
        assert await stream.next() is None


async def test_a_call_without_progress_is_answered_as_ever(node: Live) -> None:
    reply = await node.call("mcp:steps:stand", headers=_EVENTS)

    assert reply.headers["Content-Type"] == "application/json"
    assert reply.json["content"][0]["text"] == "here"


async def test_a_refusal_keeps_its_status_for_who_reads_streams(node: Live) -> None:
    reply = await node.call("mcp:steps:gone", headers=_EVENTS)

    assert reply.told == (404, "unknown_tool")


async def test_a_failure_after_progress_ends_the_stream_with_its_code(node: Live) -> None:
    reply = await node.call("mcp:steps:fall", headers=_EVENTS)

    last = reply.body.decode().strip().split("\n\n")[-1].splitlines()
    assert last[0] == "event: failure"
    assert json.loads(last[1].removeprefix("data: "))["structured"]["way_out"] == "get up"


async def test_who_hangs_up_on_the_stream_cancels_the_call(node: Live, steps: Steps) -> None:
    sent = node.headers("", _EVENTS)
    url = node.at("/api/tools/mcp:steps:walk/call")
    async with node.web.post(url, json={"arguments": {}}, headers=sent) as response:
        assert await Stream(response).next()
        response.close()
    with anyio.fail_after(30):
        await steps.cancelled.wait()


async def test_a_remote_session_hears_what_one_in_process_hears(node: Live, steps: Steps) -> None:
    heard: list[Progress] = []

    def told(one: Told) -> None:
        assert isinstance(one, Progress)
        heard.append(one)
        steps.go.set()

    async with Loopback(node.url, headers=[("Authorization", f"Bearer {node.admin}")]) as client:
        remote, options = Remote(Asking(client)), Options(progress=told)
        result = await remote.call("mcp:steps:walk", {}, options)
        with pytest.raises(SourceFailed, match="It fell"):
            await remote.call("mcp:steps:fall", {}, options)
        with pytest.raises(Parked):
            await remote.call("shell_exec", {"command": ["true"]}, options)

    assert [one.message for one in heard] == ["left", "right", ""]
    assert result.content[0]["text"] == "there"
