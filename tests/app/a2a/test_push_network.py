"""Runs `inside_push.py` in a network of its own, so that a bug could not send a packet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.app.a2a import inside_push
from tests.host.alone import check_alone

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.requirement("C3.9", "C5.3"), pytest.mark.needs("unshare", "ip")]


def test_no_notification_reaches_the_inside(tmp_path: Path) -> None:
    check_alone(inside_push, tmp_path)
