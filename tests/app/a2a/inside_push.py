"""What `test_push_network.py` runs where there is no network but the loopback.

`PUBLIC` and the metadata address are on the loopback device there: what must not be reached would
answer, and would be seen.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest
from aiohttp import web
from tests.app.a2a.pushing import House, pushing, receiving, running
from tests.host.inside_namespace import METADATA, PRIVATE, PUBLIC, Names

from openfang.core.errors import Rejected
from openfang.core.tasks import Push

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.requirement("C3.9", "C5.3")


@pytest.fixture(autouse=True)
def _only_loopback() -> None:
    """Never run where a packet could leave the machine."""
    assert [name for _, name in socket.if_nameindex()] == ["lo"]


@pytest.fixture
def names() -> Names:
    return Names({})


@pytest.fixture
def house(tmp_path: Path, names: Names) -> Iterator[House]:
    with pushing(tmp_path, names) as made:
        made.private = False
        yield made


def to(url: str, task: str = "") -> Push:
    return Push(id="mine", task=task, url=url, token="t0ken")


async def test_a_public_receiver_is_told(house: House, names: Names) -> None:
    names.answers["example.com"] = [[PUBLIC]]
    async with receiving(address=PUBLIC) as receiver, running(house.loop().run):
        task = await house.begin()
        await house.pushes.set(to(receiver.url(host="example.com"), task.id))
        await house.begin(to(receiver.url(host="example.com")))
        await receiver.times(1)
        await house.told()
    assert receiver.taken[0].headers["host"] == f"example.com:{receiver.port}"


@pytest.mark.parametrize("inner", ["127.0.0.1", METADATA, PRIVATE])
async def test_a_name_that_rebinds_is_refused_at_delivery(
    house: House, names: Names, inner: str
) -> None:
    names.answers["example.com"] = [[PUBLIC], [inner], [PUBLIC]]
    loop = house.loop()
    async with (
        receiving(address=inner) as inside,
        receiving(address=PUBLIC, port=inside.port) as receiver,
    ):
        push = to(inside.url(host="example.com"))
        await house.pushes.check(push)
        await house.begin(push)
        async with running(loop.run):
            await house.tried(1)
            assert (inside.taken, receiver.taken) == ([], [])
            house.clock.advance(1)
            loop.wake()
            await house.told()
        assert (inside.taken, len(receiver.taken)) == ([], 1)


@pytest.mark.parametrize("answer", [["127.0.0.1"], [METADATA], [PRIVATE], [PUBLIC, METADATA], []])
async def test_a_name_of_the_inside_is_no_target_and_nothing_is_said_of_it(
    house: House, names: Names, answer: list[str]
) -> None:
    names.answers["example.com"] = [answer]
    task = await house.begin()
    with pytest.raises(Rejected) as refusal:
        await house.pushes.set(to("http://example.com/", task.id))
    assert refusal.value.message == "example.com is not a host that can be notified."


async def test_the_metadata_service_is_not_opened_by_the_operators_switch(
    house: House, names: Names
) -> None:
    names.answers["example.com"] = [[METADATA]]
    house.private = True
    async with receiving(address=METADATA) as metadata, running(house.loop().run):
        task = await house.begin()
        for host in ("example.com", METADATA):
            with pytest.raises(Rejected):
                await house.pushes.set(to(metadata.url(host=host), task.id))
        await house.begin(to(metadata.url(host="example.com")))
        await house.tried(1)
        assert metadata.taken == []


async def test_a_redirect_into_the_inside_is_not_followed(house: House, names: Names) -> None:
    names.answers["example.com"] = [[PUBLIC]]
    async with receiving(address="127.0.0.1") as inside, running(house.loop().run):
        moved = web.Response(status=302, headers={"Location": inside.url()})
        async with receiving(moved, address=PUBLIC) as receiver:
            await house.begin(to(receiver.url(host="example.com")))
            await house.told()
        assert (len(receiver.taken), inside.taken) == (1, [])
