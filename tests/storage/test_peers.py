"""What peers said of themselves, kept and forgotten."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from openfang.storage.peers import (
    MOST_TASKS,
    BegunTask,
    KeptPeer,
    PeerStore,
    begin,
    forget,
    keep,
)
from openfang.testing import open_test_app

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C5.9")
PEER = KeptPeer(name="a", url="http://a", card={"name": "x", "é": [1]}, seen_at=7)


async def test_the_last_card_of_each_peer_is_kept_until_it_is_forgotten(tmp_path: Path) -> None:
    other, newer = replace(PEER, name="b"), replace(PEER, card={"name": "y"}, seen_at=8)
    async with open_test_app(tmp_path) as app:
        store, append = PeerStore(app.parts.database), app.parts.broker.append
        await append((), (keep(PEER), keep(other)))
        assert await store.all() == {"a": PEER, "b": other}
        await append((), (keep(newer), *forget("b")))
        assert await store.all() == {"a": newer}


BEGUN = BegunTask(peer="a", task="t", caller="key:one", context="c", seen_at=MOST_TASKS)


@pytest.mark.requirement("C5.8")
async def test_who_began_a_task_at_a_peer_is_known_until_the_peer_is_forgotten(
    tmp_path: Path,
) -> None:
    async with open_test_app(tmp_path) as app:
        store, append = PeerStore(app.parts.database), app.parts.broker.append
        await append((), begin(BEGUN))
        assert (await store.owner("a", "t"), await store.owner("b", "t")) == ("key:one", None)
        spoke = [await store.speaks_in("a", who, "c") for who in ("key:one", "key:two")]
        assert spoke == [True, False]
        await append((), begin(replace(BEGUN, caller="key:two", context="")))
        assert await store.owner("a", "t") == "key:two"
        assert not await store.speaks_in("a", "key:one", "c")
        await append((), forget("a"))
        assert await store.owner("a", "t") is None


@pytest.mark.requirement("C5.8")
async def test_of_the_tasks_at_one_peer_the_oldest_are_forgotten(tmp_path: Path) -> None:
    many = (
        "INSERT INTO peer_tasks WITH RECURSIVE count(n) AS (SELECT 0 UNION ALL "
        "SELECT n + 1 FROM count WHERE n + 1 < ?) SELECT 'a', n, 'key:one', '', n FROM count"
    )
    async with open_test_app(tmp_path) as app:
        store, append = PeerStore(app.parts.database), app.parts.broker.append
        await append((), ((many, (MOST_TASKS,)), *begin(replace(BEGUN, peer="b", seen_at=0))))
        assert await store.owner("a", "0") == "key:one"
        await append((), begin(BEGUN))
        known = [await store.owner("a", task) for task in ("0", "1", "t")]
        assert (known, await store.owner("b", "t")) == ([None, "key:one", "key:one"], "key:one")
