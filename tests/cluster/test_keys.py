"""A key revoked at one node opens nothing at any other, and the last administrator stays."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.cluster.house import homes
from tests.cluster.opened import opened

from openfang.app.admin import Admin
from openfang.core.calls import Role
from openfang.core.errors import Conflict, NotFound
from openfang.core.keys import AdminToken, Key

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Cli
    from tests.cluster.conftest import MakeCluster

    from openfang.testing.app import OpenApp

pytestmark = pytest.mark.requirement("C13.3", "C18.1")
SOON = 1.5


def test_a_key_revoked_at_one_node_ends_streams_and_calls_at_another(
    make_cluster: MakeCluster,
) -> None:
    with make_cluster("ab") as cluster, cluster["a"].client as a, cluster["b"].client as b:
        secret = a.post("/api/keys", json={"name": "guest"}).json()["secret"]
        theirs = {"Authorization": f"Bearer {secret}"}
        call = "/api/tools/system_time/call"
        assert b.post(call, json={}, headers=theirs).status_code == 200
        with b.stream("GET", "/api/events", headers=theirs) as stream:
            pieces = stream.iter_bytes()
            next(pieces)
            assert b.post(call, json={}, headers=theirs).status_code == 200
            assert a.delete("/api/keys/guest").status_code == 200
            revoked = time.monotonic()
            while (refused := b.post(call, json={}, headers=theirs)).status_code == 200:
                assert time.monotonic() < revoked + SOON
            assert refused.status_code == 401
            for _ in pieces:
                assert time.monotonic() < revoked + SOON + 1
        assert b.post(call, json={}).status_code == 200


async def test_nodes_that_revoke_each_others_administrators_leave_one(
    make_home: Callable[[], Cli], empty_postgres: str
) -> None:
    nodes = homes(make_home, empty_postgres, "ab")
    said = list[str]()

    async def revoke(app: OpenApp, name: str) -> None:
        try:
            await Admin(app.parts, app.caller).revoke_key(name)
        except (Conflict, NotFound) as error:
            said.append(error.message)

    async with opened(nodes) as (a, b):
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
