"""Signed checkpoints, sent to a real receiver (C13.2): all of them, behind the log, gaps told."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

import anyio
import orjson
import pytest
from anyio import to_thread
from tests.app.a2a.pushing import receiving

from openfang.app.anchor import SIGNATURE, anchoring
from openfang.app.home.doctor import examine
from openfang.app.verify import verify
from openfang.audit.notary import genuine, read_checkpoint
from openfang.testing import OpenApp, open_test_app

if TYPE_CHECKING:
    from pathlib import Path

    from tests.app.a2a.pushing import Receiver

    from openfang.audit.chain import Checkpoint

pytestmark = pytest.mark.requirement("C13.2")

SECRET = "a secret of sixteen"
HOUR = 3_600_000_000_000


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look more often than every second for what is to be sent."""
    monkeypatch.setattr("openfang.app.anchor._POLL_SECONDS", 0.05)


def configured(url: str, more: str = "allow_private = true") -> str:
    return f'[audit]\ncheckpoint_every = 1\n[audit.anchor]\nurl = "{url}"\n{more}\n'


def received(receiver: Receiver) -> list[Checkpoint]:
    lines = [line for taken in receiver.taken for line in taken.body.splitlines()]
    return [read_checkpoint(orjson.loads(line)) for line in lines]


async def anchored(app: OpenApp) -> None:
    """Wait until nothing waits."""
    parts = app.parts
    with anyio.fail_after(30):
        while True:
            found = await anchoring(parts.database, parts.writer.node, parts.config.audit.anchor)
            if found and found.last >= parts.writer.head.seq and not found.waiting:
                return
            await anyio.lowlevel.checkpoint()


async def test_every_checkpoint_reaches_the_address_outside(tmp_path: Path) -> None:
    async with (
        receiving() as receiver,
        open_test_app(
            tmp_path / "home", config=configured(receiver.url("/hook?key=hidden"))
        ) as app,
    ):
        for _ in range(3):
            await app.call("system_time")
        await anchored(app)
        points = received(receiver)
        key = app.parts.master.signing_key().public_key()
        kept, forged = genuine(points, key)
        assert (len(kept), forged) == (len(points), [])
        assert points[-1].hash == app.parts.writer.head.hash
        assert [point.seq for point in points] == sorted({point.seq for point in points})
        assert SIGNATURE.lower() not in receiver.taken[0].headers
        assert (await verify(app.parts)).intact


async def test_what_is_sent_is_signed_with_the_secret_that_is_shared(tmp_path: Path) -> None:
    more = f'allow_private = true\nsecret = "{SECRET}"'
    async with (
        receiving() as receiver,
        open_test_app(tmp_path / "home", config=configured(receiver.url(), more)) as app,
    ):
        await app.call("system_time")
        await anchored(app)
        for taken in receiver.taken:
            made = hmac.digest(SECRET.encode(), taken.body, "sha256").hex()
            assert taken.headers[SIGNATURE.lower()] == f"sha256={made}"
            assert SECRET.encode() not in taken.body


async def test_a_receiver_that_fails_gets_them_again_and_delays_no_call(tmp_path: Path) -> None:
    async with (
        receiving(500, 302) as receiver,
        open_test_app(tmp_path / "home", config=configured(receiver.url())) as app,
    ):
        await app.call("system_time")
        await receiver.times(1)
        with anyio.fail_after(30):
            await app.call("system_time")
        await anchored(app)
        first, second, *_, last = received(receiver)
        assert first == second
        assert last.hash == app.parts.writer.head.hash


async def test_a_gap_is_told_where_the_node_is_looked_at(tmp_path: Path) -> None:
    config = configured("http://127.0.0.1:9/hook?key=hidden")
    async with open_test_app(tmp_path / "home", config=config) as app:
        await app.call("system_time")
        parts = app.parts
        with anyio.fail_after(20):
            while True:
                section = parts.config.audit.anchor
                found = await anchoring(parts.database, parts.writer.node, section)
                if found and found.waiting > 1:
                    break
                await anyio.lowlevel.checkpoint()
        later = parts.clock.time_ns() + HOUR
        checks = await to_thread.run_sync(examine, tmp_path / "home", dict[str, str](), later)
    (check,) = [one for one in checks if one.name == "anchor"]
    assert "did not reach 127.0.0.1" in check.text
    assert "hidden" not in check.text
    assert (found.last, found.since is not None) == (0, True)
    assert found.as_json()["waiting"] == found.waiting


async def test_what_a_node_could_not_send_is_sent_when_it_is_opened_again(tmp_path: Path) -> None:
    async with receiving() as receiver:
        address = receiver.url()
    async with open_test_app(tmp_path / "home", config=configured(address)) as app:
        await app.call("system_time")
    port = int(address.rsplit(":", 1)[1].split("/")[0])
    async with (
        receiving(port=port) as receiver,
        open_test_app(tmp_path / "home", config=configured(address)) as app,
    ):
        await anchored(app)
        stored = await app.parts.database.read("SELECT seq FROM checkpoints ORDER BY seq")
        assert [point.seq for point in received(receiver)] == [seq for (seq,) in stored]


async def test_a_private_address_is_an_anchor_only_if_it_is_said(tmp_path: Path) -> None:
    async with (
        receiving() as receiver,
        open_test_app(tmp_path / "home", config=configured(receiver.url(), "")) as app,
    ):
        await app.call("system_time")
    assert receiver.taken == []
