"""Runs `inside_addresses.py` in a network of its own, so that a bug could not send a packet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.host.alone import check_alone
from tests.sources.a2a import inside_addresses

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.requirement("C3.9", "C5.8"), pytest.mark.needs("unshare", "ip")]


def test_no_card_leads_where_nothing_may_go(tmp_path: Path) -> None:
    check_alone(inside_addresses, tmp_path)
