"""What every test shares: the event loop that we ship with, and a watch on blocking calls."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from blockbuster import BlockBuster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}


@pytest.fixture(autouse=True)
def _no_blocking_calls() -> Iterator[None]:
    """Fail a test whose event loop is blocked, except where the writer commits on purpose."""
    watch = BlockBuster()
    for name, function in watch.functions.items():
        if name.startswith("sqlite3."):
            function.can_block_in("openfang/storage/", {"_commit_now"})
    watch.activate()
    try:
        yield
    finally:
        watch.deactivate()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own; the user's is never touched."""
    folder = tmp_path / "home"
    monkeypatch.setenv("OPENFANG_HOME", str(folder))
    for name in ("OPENFANG_API_KEY", "OPENFANG_LISTEN", "TRACEPARENT"):
        monkeypatch.delenv(name, raising=False)
    return folder


def pytest_configure(config: pytest.Config) -> None:
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(config.rootpath / ".hypothesis"))
