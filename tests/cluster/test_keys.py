"""A key revoked at one node opens nothing at any other, and the last administrator stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from tests.cluster.house import homes
from tests.cluster.opened import opened
from tests.edges.live import served_at

from openfang.app.admin import Admin
from openfang.app.auth import callers
from openfang.core.calls import Role
from openfang.core.errors import Conflict, NotFound
from openfang.core.keys import AdminToken, Key
from openfang.storage.units import Notice

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.cli.conftest import Cli

    from openfang.testing.app import OpenApp

pytestmark = pytest.mark.requirement("C13.3", "C18.1")
CALL = "/api/tools/system_time/call"


@pytest.fixture
async def two(make_home: Callable[[], Cli], empty_postgres: str) -> AsyncIterator[list[OpenApp]]:
    async with opened(homes(make_home, empty_postgres, "ab")) as apps:
        yield apps


@pytest.mark.parametrize(("heard", "looks"), [("keys", 60.0), ("nothing", 1.0)])
async def test_a_key_revoked_at_one_node_ends_streams_and_calls_at_another(
    two: list[OpenApp], heard: str, looks: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = two
    monkeypatch.setattr(callers, "_SECONDS", looks)
    monkeypatch.setattr(callers, "KEYS", Notice(heard))
    async with served_at(a, {"HOME": "/"}) as here, served_at(b, {"HOME": "/"}) as there:
        secret = await here.key("guest")
        assert (await there.post(CALL, key=secret)).status == 200
        headers = there.headers(secret)
        async with there.web.get(there.at("/api/events"), headers=headers) as stream:
            await stream.content.readline()
            assert (await there.post(CALL, key=secret)).status == 200
            assert (await here.ask("DELETE", "/api/keys/guest")).status == 200
            with anyio.fail_after(30):
                while (refused := await there.post(CALL, key=secret)).status == 200:
                    pass
                await stream.content.read()
        assert refused.told == (401, "unauthenticated")
        assert (await there.post(CALL)).status == 200


async def test_nodes_that_revoke_each_others_administrators_leave_one(two: list[OpenApp]) -> None:
    (a, b), said = two, list[str]()

    async def revoke(app: OpenApp, name: str) -> None:
        try:
            await Admin(app.parts, app.caller).revoke_key(name)
        except (Conflict, NotFound) as error:
            said.append(error.message)

    for turn in range(5):
        mine = [key for key in await a.parts.keys.all() if _lasts(key)]
        key = Key(id="", name=f"other-{turn}", role=Role.ADMIN)
        other, _ = await Admin(a.parts, a.caller).create_key(key)
        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                group.start_soon(revoke, a, other.name)
                group.start_soon(revoke, b, mine[0].name)
        assert len([one for one in await b.parts.keys.all() if _lasts(one)]) == 1
    assert len(said) == 5
    assert all("the last administrator's key" in one for one in said)


def _lasts(key: Key | AdminToken) -> bool:
    admin = isinstance(key, Key) and key.role is Role.ADMIN
    return admin and key.revoked_at is None and key.expires_at is None
