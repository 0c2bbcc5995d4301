"""Failed sign-ins are limited before the key is looked up, and lock out nobody else (C12.3)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from tests.edges.api.test_rate import from_address
from tests.edges.live import live

from openfang.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from tests.edges.live import Live

pytestmark = pytest.mark.requirement("C12.3", "C18.1")

FAILURES = 20
LIMITED = (429, "sign_in_limit")


@contextmanager
def looked_up(node: Live) -> Generator[list[str]]:
    """Collect what the database is asked for keys meanwhile."""
    asked: list[str] = []
    connection = node.app.file.connection
    connection.set_trace_callback(lambda sql: asked.append(sql) if "FROM keys" in sql else None)
    try:
        yield asked
    finally:
        connection.set_trace_callback(None)


async def fail(node: Live, count: int = FAILURES) -> list[int]:
    return [
        (await node.get("/api/version", key=f"of_guess-{number}")).status for number in range(count)
    ]


async def test_the_key_store_is_not_even_asked(tmp_path: Path) -> None:
    async with live(tmp_path / "home", clock=ManualClock()) as node:
        assert (await node.get("/api/version")).status == 200
        with looked_up(node) as asked:
            assert await fail(node) == [401] * FAILURES
        assert len(asked) >= FAILURES
        with looked_up(node) as asked:
            for guess in ("of_guess", "x" * 5_000, "\xff"):
                assert (await node.get("/api/version", key=guess)).told == LIMITED
        assert asked == []
        records = (await node.get("/api/audit?event=policy_violation&limit=1000")).json
        assert records["total"] == FAILURES


async def test_a_wait_of_retry_after_is_enough_for_one_more(tmp_path: Path) -> None:
    clock = ManualClock()
    async with live(tmp_path / "home", clock=clock) as node:
        await fail(node)
        refused = await node.get("/api/version", key="of_guess")
        assert (refused.told, refused.headers["Retry-After"]) == (LIMITED, "6")
        clock.advance(5)
        assert (await node.get("/api/version", key="of_guess")).status == 429
        clock.advance(1)
        assert (await node.get("/api/version", key="of_guess")).status == 401
        assert (await node.get("/api/version", key="of_guess")).status == 429


async def test_a_right_key_still_works_from_that_address(tmp_path: Path) -> None:
    clock = ManualClock()
    async with live(tmp_path / "home", clock=clock) as node:
        used, unused = await node.key("used"), await node.key("unused")
        assert (await node.get("/api/version", key=used)).status == 200
        await fail(node)
        # Later than anybody remembers who called: it is looked up again.
        clock.advance(2)
        with looked_up(node) as asked:
            assert (await node.get("/api/version", key=used)).status == 200
        assert len(asked) == 1
        # Nor does anybody lock out who never was here before.
        assert (await node.get("/api/version", key=unused)).status == 200
        await node.ask("DELETE", "/api/keys/used")
        assert (await node.get("/api/version", key=used)).status == 401
        assert (await node.get("/api/version", key=used)).told == LIMITED


async def test_the_key_of_the_configuration_can_only_be_guessed_slowly(tmp_path: Path) -> None:
    config = 'api_key = "a-key-of-my-own"\n'
    async with live(tmp_path / "home", config=config, clock=ManualClock()) as node:
        await fail(node)
        assert (await node.get("/api/version", key="a-key-of-my-own")).told == LIMITED


@pytest.mark.requirement("C14.2", "C14.3")
async def test_who_is_turned_away_is_in_the_log_and_in_the_numbers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with live(tmp_path / "home", clock=ManualClock()) as node:
        elsewhere, user = await node.key("elsewhere", edges=["mcp"]), await node.key("user")
        assert (await node.get("/api/version", key=elsewhere)).told == (403, "edge")
        assert (await node.get("/api/audit", key=user)).told == (403, "role")
        assert (await node.get("/api/keys", key=user)).told == (403, "admin_only")
        await fail(node, FAILURES - 1)
        for _ in range(3):
            assert (await node.get("/api/version", key="of_guess")).told == LIMITED
        counted = (await node.get("/metrics")).body.decode()
    rules = {"edge": 1, "role": 1, "admin_only": 1, "unauthenticated": 19, "sign_in_limit": 3}
    for rule, count in rules.items():
        assert f'openfang_refusals_total{{rule="{rule}"}} {count}.0\n' in counted
    lines = [line for line in caplog.messages if line.startswith("Policy violation: ")]
    assert lines == [
        "Policy violation: key:elsewhere may not come in over api.",
        "Policy violation: key:user is no auditor or admin of this node.",
        "Policy violation: key:user is no admin of this node.",
        *["Policy violation: an unknown, expired or revoked key"] * 19,
        "Policy violation: too many keys from 127.0.0.1 were not known",
    ]


async def test_another_address_is_not_affected(tmp_path: Path) -> None:
    async with live(tmp_path / "home", clock=ManualClock()) as node:
        secret = await node.key("elsewhere")
        await fail(node, FAILURES + 1)
        for key, status in ((secret, 200), ("of_guess", 401)):
            headers = {"X-Api-Key": key}
            found = await from_address(node, "127.0.0.3", "/api/version", headers=headers)
            assert found == status
        assert (await node.get("/api/health", key=None)).status == 200


async def test_what_is_public_needs_no_sign_in_and_ignores_a_bad_key(tmp_path: Path) -> None:
    async with live(tmp_path / "home", clock=ManualClock()) as node:
        await fail(node, FAILURES + 1)
        assert (await node.get("/api/health", key="of_guess")).status == 200


async def test_a_key_for_another_edge_counts_as_a_failure(tmp_path: Path) -> None:
    async with live(tmp_path / "home", clock=ManualClock()) as node:
        elsewhere = await node.key("elsewhere", edges=["mcp"])
        told = [(await node.get("/api/version", key=elsewhere)).status for _ in range(FAILURES + 1)]
        assert told == [403] * FAILURES + [429]
