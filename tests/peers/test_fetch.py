"""Runs `inside_fetch.py` in a network of its own, so that a bug could not send a packet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.host.alone import check_alone
from tests.peers import inside_fetch

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.requirement("C3.9", "C16.2"),
    pytest.mark.needs("bwrap", "unshare", "ip"),
]


def test_the_server_that_fetches_reaches_what_it_may_and_no_more(tmp_path: Path) -> None:
    resolver = tmp_path / "resolv.conf"
    resolver.write_text("nameserver 127.0.0.1\n")
    check_alone(inside_fetch, tmp_path, first=f"mount --bind '{resolver}' /etc/resolv.conf")
