"""Greeting, pages and rounds of questions, over stdio; the same code runs over HTTP."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.sources.mcp.conftest import PEER, US, Ear, connected, greet, launch

from openfang.protocols.mcp.errors import METHOD_NOT_FOUND, BadAnswer, RpcError
from openfang.protocols.mcp.versions import HANDSHAKE
from openfang.sources.mcp import greeting
from openfang.sources.mcp.listing import MAX_ENTRIES, list_all
from openfang.sources.mcp.reach import Reach
from openfang.sources.mcp.spec import ServerSpec, Stdio
from openfang.sources.mcp.stdio import open_stdio
from openfang.sources.mcp.transport import Lost, NotSpoken, ProbeFatal

pytestmark = pytest.mark.requirement("C3.2", "C3.3")


async def methods(connection: Any) -> list[str]:
    report = await connection.call("report", {})
    return report["structuredContent"]["methods"]


async def test_an_older_server_is_greeted_by_a_handshake() -> None:
    async with connected("handshake") as connection:
        assert (connection.era, connection.version) == ("handshake", "2025-11-25")
        assert connection.server_info == {"name": "handshake-peer", "version": "1"}
        assert connection.abilities == {"tools": {}}
        assert connection.instructions == "shake hands"
        await connection.ping()
        report = (await connection.call("report", {}))["structuredContent"]
    assert report["methods"] == ["server/discover", "initialize", "ping", "tools/call"]
    assert report["noted"] == ["notifications/initialized"]


@pytest.mark.parametrize("version", HANDSHAKE)
async def test_every_revision_of_the_handshake_is_spoken(version: str) -> None:
    async with connected("handshake", f"only={version}") as connection:
        assert connection.version == version
        assert len(await connection.tools()) == 1


async def test_a_server_that_refuses_instead_of_negotiating_gets_what_it_offers() -> None:
    async with connected("handshake", "only=2025-03-26", "strict") as connection:
        assert connection.version == "2025-03-26"


async def test_a_server_that_names_no_revision_speaks_the_first() -> None:
    async with connected("handshake", "only=none") as connection:
        assert connection.version == "2024-11-05"


async def test_a_revision_that_nobody_knows_ends_the_connection() -> None:
    with pytest.raises(Lost, match="2031-01-01"):
        async with connected("handshake", "only=2031-01-01"):
            pass


async def test_a_modern_server_hears_who_asks_with_every_request() -> None:
    async with connected("modern") as connection:
        assert (connection.era, connection.version) == ("modern", "2026-07-28")
        assert connection.server_info == {"name": "modern-peer", "version": "2"}
        assert connection.instructions == "use it well"
        result = await connection.call("echo", {"text": "x"}, meta={"traceparent": "00-1"})
        await connection.ping()
        assert await methods(connection) == [
            "server/discover",
            "tools/call",
            "server/discover",
            "tools/call",
        ]
    assert result["structuredContent"]["meta"] == {
        "traceparent": "00-1",
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "openfang", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
    }


async def test_a_server_of_both_eras_is_spoken_to_in_the_newer() -> None:
    async with connected("both") as connection:
        assert connection.era == "modern"


async def test_a_modern_server_that_refuses_a_revision_is_asked_with_one_it_supports() -> None:
    async with connected("modern", "refuse_once") as connection:
        assert connection.era == "modern"


async def test_a_server_that_lists_only_older_revisions_is_older() -> None:
    async with connected("both", "supports=2025-06-18,1999-01-01") as connection:
        assert connection.era == "handshake"


async def test_a_server_that_never_answers_the_probe_is_older(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(greeting, "PROBE_SECONDS", 0.3)
    async with connected("handshake", "mute=server/discover") as connection:
        assert connection.era == "handshake"


async def test_a_modern_server_that_was_slow_to_start_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(greeting, "PROBE_SECONDS", 0.3)
    async with connected("modern", "late=0.5") as connection:
        assert connection.era == "modern"
        assert (await methods(connection))[:2] == ["server/discover", "initialize"]


async def test_a_server_that_refuses_both_greetings_is_not_spoken_to() -> None:
    with pytest.raises(NotSpoken, match="refuses to initialize"):
        async with connected("modern", "supports=2031-01-01"):
            pass


async def test_a_server_known_to_be_older_is_not_probed() -> None:
    ear = Ear()
    async with open_stdio(launch("both"), ear, complained=ear.complained) as transport:
        connection = await greet(transport, ear, known="handshake")
        assert connection.era == "handshake"
        assert "server/discover" not in await methods(connection)


async def test_a_server_that_dies_of_the_probe_says_so() -> None:
    with pytest.raises(ProbeFatal, match="exit code 3"):
        async with connected("handshake", "fatal=server/discover"):
            pass


async def test_a_server_that_dies_of_initialize_is_lost() -> None:
    with pytest.raises(Lost, match="exit code 3") as lost:
        async with connected("handshake", "fatal=initialize"):
            pass
    assert type(lost.value) is Lost


def spec(*arguments: str) -> ServerSpec:
    argv = (sys.executable, "-I", "-S", str(PEER), *arguments)
    reached = Stdio(argv=argv, cwd=Path("/"), environment={"PATH": "/usr/bin:/bin"})
    return ServerSpec(name="peer", reached=reached)


async def test_what_was_found_out_is_remembered_for_the_next_time() -> None:
    lines: list[tuple[str, str]] = []

    def complained(name: str, line: str) -> None:
        lines.append((name, line))

    reach = Reach(client=US, capabilities={}, complained=complained)
    dying = spec("handshake", "fatal=server/discover")
    for _ in range(2):
        async with reach(dying, Ear()) as connection:
            assert await methods(connection) == ["initialize", "tools/call"]
            await connection.call("complain", {"lines": 1})
    async with reach(spec("modern"), Ear()) as connection:
        assert connection.era == "modern"
    assert lines == [("peer", "line 0")] * 2


@pytest.mark.requirement("C3.7")
async def test_a_server_that_ends_before_it_reads_anything_is_started_once(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    code = f"open({str(starts)!r}, 'a').write('x'); raise SystemExit(4)"
    argv = (sys.executable, "-I", "-S", "-c", code)
    reached = Stdio(argv=argv, cwd=Path("/"), environment={"PATH": "/usr/bin:/bin"})
    reach = Reach(client=US, capabilities={}, complained=lambda _name, _line: None)
    for count in (1, 2):
        with pytest.raises(Lost, match="exit code 4"):
            async with reach(ServerSpec(name="peer", reached=reached), Ear()):
                pass
        assert await anyio.Path(starts).read_text() == "x" * count


@pytest.mark.requirement("C3.4")
async def test_all_pages_are_listed_with_unknown_fields() -> None:
    async with connected("handshake", "pages=4") as connection:
        tools = await connection.tools()
    assert [(tool["name"], tool["x-unknown"]) for tool in tools] == [
        (f"tool{page}", page) for page in range(4)
    ]


async def test_a_list_that_leads_in_a_circle_ends() -> None:
    async with connected("handshake", "circle") as connection:
        assert [tool["name"] for tool in await connection.tools()] == ["tool0", "tool5"]


async def test_a_list_of_too_many_pages_fails() -> None:
    async with connected("handshake", "pages=101") as connection:
        with pytest.raises(BadAnswer, match="100 pages"):
            await connection.tools()


async def test_a_list_of_too_many_entries_fails() -> None:
    async def page(_: object) -> dict[str, Any]:
        return {"tools": [{"name": "x"}] * 4000, "nextCursor": str(time.monotonic_ns())}

    with pytest.raises(BadAnswer, match="12000 entries"):
        await list_all(page, "tools")
    assert MAX_ENTRIES == 10_000


@pytest.mark.parametrize("answer", [{}, {"tools": None}, {"tools": {"a": 1}}])
async def test_a_list_that_is_none_fails(answer: dict[str, Any]) -> None:
    async def page(_: object) -> dict[str, Any]:
        return answer

    with pytest.raises(BadAnswer):
        await list_all(page, "tools")


async def test_what_is_no_object_is_left_out_of_a_list() -> None:
    async def page(_: object) -> dict[str, Any]:
        return {"tools": [1, None, {"name": "a"}, "x"]}

    assert await list_all(page, "tools") == [{"name": "a"}]


def asked_peer() -> Ear:
    return Ear(elicitation_create={"action": "accept"}, roots_list={"roots": []})


@pytest.mark.requirement("C3.10")
async def test_a_result_that_needs_input_gets_it_and_its_state_word_for_word() -> None:
    async with connected("modern", ear=asked_peer()) as connection:
        result = await connection.call("inputs", {"rounds": 3})
        seen = result["structuredContent"]
        assert seen["responses"] == {"name": {"action": "accept"}, "roots": {"roots": []}}
        assert seen["state"] == " state\t3"
        assert seen["id"] == 5


@pytest.mark.requirement("C3.10")
async def test_state_without_questions_is_sent_back_alone() -> None:
    async with connected("modern") as connection:
        result = await connection.call("inputs", {"rounds": 1, "silent": True})
    assert result["structuredContent"]["responses"] is None


async def test_a_server_that_is_never_content_is_given_up_on() -> None:
    async with connected("modern", ear=asked_peer()) as connection:
        with pytest.raises(BadAnswer, match="8 times"):
            await connection.call("inputs", {"rounds": 99})


async def test_a_question_that_nobody_answers_fails_the_call() -> None:
    async with connected("modern") as connection:
        with pytest.raises(RpcError) as refused:
            await connection.call("inputs", {"rounds": 1})
        assert refused.value.code == METHOD_NOT_FOUND


async def test_a_question_that_no_result_may_ask_is_never_passed_on() -> None:
    async with connected("modern", ear=asked_peer()) as connection:
        with pytest.raises(BadAnswer):
            await connection.call("inputs", {"rounds": 1, "method": "tools/call"})


async def test_a_type_of_result_that_nobody_knows_is_a_bad_answer_in_the_modern_era_only() -> None:
    async with connected("modern") as connection:
        with pytest.raises(BadAnswer, match="surprise"):
            await connection.call("wrong", {"kind": "result_type"})
    async with connected("handshake") as connection:
        assert await connection.call("wrong", {"kind": "result_type"}) == {"resultType": "surprise"}


@pytest.mark.requirement("C3.6")
async def test_changes_are_heard_in_the_modern_era_by_listening() -> None:
    ear = Ear()
    async with connected("modern", ear=ear) as connection:
        with anyio.fail_after(30):
            await connection.listen()
    assert [method for method, _ in ear.notes] == [
        "notifications/subscriptions/acknowledged",
        "notifications/tools/list_changed",
    ]
    async with connected("handshake") as connection:
        await connection.listen()
        assert "subscriptions/listen" not in await methods(connection)
