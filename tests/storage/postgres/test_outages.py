"""A node and its own server: passwords, certificates, a server that hangs or is killed."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import anyio
import pytest
from anyio import to_thread
from tests.cli.conftest import make_home
from tests.cluster.house import homes
from tests.cluster.opened import opened
from tests.edges.live import served_at
from tests.faults.test_disk import in_a_namespace
from tests.postgres import run
from tests.sources.mcp.test_hostile_web import make_certificates
from tests.storage.postgres import on_a_small_disk
from tests.storage.postgres.own import knows_tls, own_server

from openfang.app.auth import shared
from openfang.app.verify import verify
from openfang.core.errors import HomeError, OpenFangError
from openfang.storage.postgres.address import Address
from openfang.storage.postgres.database import PostgresStorage, open_storage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator

    from tests.cli.conftest import Cli
    from tests.storage.postgres.own import Own

    from openfang.storage.postgres.writer import PostgresWriter
    from openfang.testing.app import OpenApp

__all__ = ("make_home",)
pytestmark = pytest.mark.requirement("C13.3")
CALL = "/api/tools/system_time/call"
tls = pytest.mark.skipif(not knows_tls(), reason="needs a server that was built with TLS")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder)
    return folder


@pytest.fixture(scope="module")
def server(certificates: Path) -> Iterator[Own]:
    with own_server(certificate=certificates / "fits" if knows_tls() else None) as made:
        yield made


@pytest.fixture
async def app(make_home: Callable[[], Cli], server: Own) -> AsyncGenerator[OpenApp]:
    name = f"of_{time.monotonic_ns()}"
    await run(server.url(), f"CREATE DATABASE {name}")
    url = server.url().replace("/postgres?", f"/{name}?").removesuffix("/postgres") + f"/{name}"
    async with opened(homes(make_home, url, "a")) as (one,):
        yield one


async def reached(url: str) -> bool:
    """Open a server as a node does; say whether what is said to it can be read on the way."""
    storage = PostgresStorage(Address(url))
    try:
        (row,) = await storage.read("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
        return bool(row[0])
    finally:
        await storage.aclose()


async def test_a_wrong_password_is_one_sentence_without_it(server: Own) -> None:
    with pytest.raises(HomeError) as caught:
        await open_storage(Address(server.url(password="falsch")))
    assert "refuses the password" in caught.value.message
    assert "storage.url" in caught.value.way_out
    assert "falsch" not in str(caught.value)


@tls
async def test_what_is_said_to_a_server_is_secret_where_that_is_required(
    server: Own, certificates: Path
) -> None:
    assert not await reached(server.url(query="?sslmode=disable"))
    assert await reached(server.url(query="?sslmode=require"))
    signed = f"?sslmode=verify-full&sslrootcert={certificates / 'authority.pem'}"
    assert await reached(server.url(query=signed))


@tls
@pytest.mark.parametrize(
    ("root", "host", "said"),
    [
        ("stranger", "127.0.0.1", "unable to get local issuer certificate"),
        ("authority", "localhost", "Hostname mismatch"),
    ],
)
async def test_a_certificate_of_anybody_else_is_refused(
    server: Own, certificates: Path, root: str, host: str, said: str
) -> None:
    query = f"?sslmode=verify-full&sslrootcert={certificates / root}.pem"
    with pytest.raises(HomeError) as caught:
        await reached(server.url(query=query, host=host))
    assert "is not accepted" in caught.value.message
    assert said in caught.value.message
    assert "sslrootcert" in caught.value.way_out
    assert "geheim" not in str(caught.value)


@asynccontextmanager
async def lagging() -> AsyncGenerator[list[float]]:
    """Note how long the loop stood still at most."""
    found = [0.0]

    async def look() -> None:
        while True:
            began = time.monotonic()
            await anyio.sleep(0.01)
            found[0] = max(found[0], time.monotonic() - began)

    async with anyio.create_task_group() as group:
        group.start_soon(look)
        yield found
        group.cancel_scope.cancel()


async def test_a_server_that_hangs_holds_nobody_up_who_does_not_need_it(
    app: OpenApp, server: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "LOOK_SECONDS", 1.0)
    async with served_at(app, {"HOME": "/"}) as node:
        guest, other = await node.key("guest"), await node.key("other")
        assert (await node.post(CALL, key=guest)).status == 200
        headers = node.headers(guest)
        async with (
            node.web.get(node.at("/api/events"), headers=headers) as stream,
            lagging() as lag,
        ):
            await stream.content.readline()
            assert (await node.get("/api/version", key=guest)).status == 200
            with server.stopped():
                assert (await node.get("/api/version", key=guest)).status == 200
                began = time.monotonic()
                refused = await node.get("/api/version", key=other)
                assert refused.told == (503, "keys_unavailable")
                assert "Retry-After" in refused.headers
                assert time.monotonic() - began < 30
                assert (await node.get("/api/health")).status == 200
                assert (await node.get("/api/version", key=guest)).told[0] == 503
            assert (
                lag[0] < 3.0
            )  # of a busy machine; who waited for the server would be at it for longer
            with anyio.fail_after(20):
                for key in (guest, other):
                    while (await node.post(CALL, key=key)).status != 200:
                        pass
            assert not stream.content.at_eof()


async def test_a_server_that_is_killed_and_started_again_costs_no_record(
    app: OpenApp, server: Own
) -> None:
    kept, told, over = list[str](), set[str](), anyio.Event()

    async def caller() -> None:
        while not over.is_set():
            try:
                kept.append((await app.call("system_time")).call_id)
            except OpenFangError as error:
                told.add(error.message)
                await anyio.sleep(0.05)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(caller)
            await _until(lambda: len(kept) > 50)
            await to_thread.run_sync(server.kill)
            await to_thread.run_sync(server.start)
            before = len(kept)
            await _until(lambda: len(kept) > before + 50)
            over.set()
        broker, writer = app.parts.broker, cast("PostgresWriter", app.parts.writer)
        while broker.failing or broker._owed or writer._doubts:
            await broker.try_again()
    endings = [
        event.call_id for event in await app.events() if event.event_type == "tool_invocation_end"
    ]
    assert set(kept) <= set(endings)
    assert len(endings) == len(set(endings))
    assert (await verify(app.parts)).intact
    assert all("Postgres" in one or "not known" in one for one in told), told


@pytest.mark.needs("unshare", "mount")
@pytest.mark.requirement("C7.10")
def test_a_record_that_the_servers_disk_does_not_take_is_refused_until_there_is_room(
    tmp_path: Path,
) -> None:
    assert in_a_namespace("full", tmp_path, Path(on_a_small_disk.__file__)) == {
        "message": "The disk of postgresql://postgres@127.0.0.1:PORT/postgres is full.",
        "way_out": "free some space there; nothing is lost",
        "again": True,
        "lost": 0,
        "after": 2,
        "intact": True,
    }


async def _until(reached: Callable[[], bool]) -> None:
    while not reached():  # noqa: ASYNC110 - of what is done elsewhere nobody tells
        await anyio.sleep(0.01)
