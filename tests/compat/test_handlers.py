"""Handlers behind the audit log: at least once, in order, and never in a call's way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.compat.blocks import demo, house

from openfang.compat import AuditEvent, audit_logger
from openfang.testing import open_test_app

if TYPE_CHECKING:
    from pathlib import Path

    from openfang.testing import OpenApp

pytestmark = pytest.mark.requirement("C7.15", "C13.5")
RECORDS_OF_A_CALL = 3
PLUGIN = """\
from pathlib import Path

from anyio import to_thread

FOLDER = Path(__file__).parent


def take(number):
    flag = FOLDER / "fails"
    if flag.exists():
        flag.unlink()
        raise ConnectionError("the other side is away")
    with (FOLDER / "taken").open("a") as file:
        file.write(f"{number}\\n")


class Takes:
    async def handle_audit_event(self, event):
        if event.call_id:
            await to_thread.run_sync(take, event.audit_id - 1)
"""
CONFIG = '[plugins]\naudit_handlers = ["python:handler.py:Takes"]\n'


@dataclass
class Takes:
    """Takes events of calls; before each it may be away, or fail.

    A home's first record is its first key, so the calls' numbers count from the one after it.
    """

    expected: int
    failures: int = 0
    wait: anyio.Event | None = None
    tried: list[int] = field(default_factory=list[int])
    taken: list[AuditEvent] = field(default_factory=list[AuditEvent])
    busy: anyio.Event = field(default_factory=anyio.Event)
    done: anyio.Event = field(default_factory=anyio.Event)

    async def handle_audit_event(self, event: AuditEvent) -> None:
        if not event.call_id:
            return
        self.busy.set()
        self.tried.append(event.audit_id - 1)
        if self.wait:
            await self.wait.wait()
        if self.failures:
            self.failures -= 1
            raise ConnectionError
        self.taken.append(event)
        if len(self.taken) >= self.expected:
            self.done.set()

    async def all(self) -> list[int]:
        with anyio.fail_after(20):
            await self.done.wait()
        return [event.audit_id - 1 for event in self.taken]


async def calls(app: OpenApp, count: int) -> None:
    for number in range(count):
        await app.call("mcp:demo:echo", text=str(number))


def taken(folder: Path) -> list[int]:
    return [int(line) for line in (folder / "taken").read_text().split()]


@pytest.mark.parametrize("fails", [False, True])
async def test_a_plugin_gets_everything_in_order_also_what_it_missed(
    tmp_path: Path, *, fails: bool
) -> None:
    (tmp_path / "handler.py").write_text(PLUGIN)
    if fails:
        (tmp_path / "fails").touch()
    async with open_test_app(tmp_path, sources=[demo()]) as app:
        await calls(app, 2)
    async with open_test_app(tmp_path, config=CONFIG, sources=[demo()]) as app:
        await calls(app, 2)
    async with open_test_app(tmp_path, sources=[demo()]) as app:
        await calls(app, 1)
    async with open_test_app(tmp_path, config=CONFIG, sources=[demo()]) as app:
        await calls(app, 1)
    assert taken(tmp_path) == list(range(1, 6 * RECORDS_OF_A_CALL + 1))
    assert not (tmp_path / "fails").exists()


async def test_a_registered_handler_gets_whole_events_in_order(tmp_path: Path) -> None:
    handler = Takes(expected=3 * RECORDS_OF_A_CALL)
    audit_logger.register_handler(handler)
    async with house(tmp_path) as app:
        await calls(app, 3)
        await handler.all()
        assert handler.taken == await app.events()


async def test_a_handler_may_come_before_the_house_or_while_it_is_in_use(tmp_path: Path) -> None:
    early, late = Takes(expected=2 * RECORDS_OF_A_CALL), Takes(expected=2 * RECORDS_OF_A_CALL)
    audit_logger.register_handler(early)
    async with house(tmp_path) as app:
        await calls(app, 1)
        audit_logger.register_handler(late)
        await calls(app, 1)
        everything = list(range(1, 2 * RECORDS_OF_A_CALL + 1))
        assert await early.all() == everything
        assert await late.all() == everything


async def test_a_handler_that_comes_back_goes_on_where_it_stopped(tmp_path: Path) -> None:
    first, second = Takes(expected=RECORDS_OF_A_CALL), Takes(expected=2 * RECORDS_OF_A_CALL)
    async with house(tmp_path) as app:
        audit_logger.register_handler(first)
        await calls(app, 1)
        assert await first.all() == [1, 2, 3]
        audit_logger.remove_handler(first)
        await calls(app, 1)
    audit_logger.register_handler(second)
    async with house(tmp_path) as app:
        await calls(app, 1)
        assert await second.all() == [4, 5, 6, 7, 8, 9]
    assert await first.all() == [1, 2, 3]


async def test_two_handlers_of_a_class_are_told_apart_and_a_name_is_kept(tmp_path: Path) -> None:
    one, two = Takes(expected=RECORDS_OF_A_CALL), Takes(expected=RECORDS_OF_A_CALL)
    audit_logger.register_handler(one, name="siem")
    audit_logger.register_handler(two, name="siem")
    async with house(tmp_path) as app:
        await calls(app, 1)
        assert await one.all() == await two.all() == [1, 2, 3]
    assert audit_logger.handlers == (one, two)


async def test_a_slow_handler_delays_no_call(tmp_path: Path) -> None:
    released = anyio.Event()
    handler = Takes(expected=5 * RECORDS_OF_A_CALL, wait=released)
    audit_logger.register_handler(handler)
    async with house(tmp_path) as app:
        await calls(app, 1)
        with anyio.fail_after(20):
            await handler.busy.wait()
            await calls(app, 4)
        assert handler.taken == []
        released.set()
        assert await handler.all() == list(range(1, 5 * RECORDS_OF_A_CALL + 1))


async def test_a_failing_handler_delays_no_call_and_gets_them_again(tmp_path: Path) -> None:
    handler = Takes(expected=2 * RECORDS_OF_A_CALL, failures=2)
    audit_logger.register_handler(handler)
    async with house(tmp_path) as app:
        with anyio.fail_after(20):
            await calls(app, 2)
        assert await handler.all() == [1, 2, 3, 4, 5, 6]
    assert handler.tried == [1, 1, 1, 2, 3, 4, 5, 6]


async def test_what_a_handler_never_took_waits_for_it(tmp_path: Path) -> None:
    broken = Takes(expected=1, failures=1000)
    audit_logger.register_handler(broken)
    async with house(tmp_path) as app:
        await calls(app, 1)
    assert set(broken.tried) == {1}
    audit_logger.remove_handler(broken)
    mended = Takes(expected=RECORDS_OF_A_CALL)
    audit_logger.register_handler(mended)
    async with house(tmp_path):
        assert await mended.all() == [1, 2, 3]


async def test_a_broken_handler_does_not_keep_events_from_another(tmp_path: Path) -> None:
    broken, sound = Takes(expected=1, failures=1000), Takes(expected=RECORDS_OF_A_CALL)
    audit_logger.register_handler(broken)
    audit_logger.register_handler(sound)
    async with house(tmp_path) as app:
        await calls(app, 1)
        assert await sound.all() == [1, 2, 3]


async def test_a_plugin_and_a_registered_handler_both_get_everything(tmp_path: Path) -> None:
    (tmp_path / "handler.py").write_text(PLUGIN)
    handler = Takes(expected=4 * RECORDS_OF_A_CALL)
    audit_logger.register_handler(handler)
    async with house(tmp_path, config=CONFIG) as app:
        await calls(app, 4)
        everything = await handler.all()
    assert everything == taken(tmp_path) == list(range(1, 4 * RECORDS_OF_A_CALL + 1))
