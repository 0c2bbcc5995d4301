"""Runs `inside_namespace.py` in a network of its own, so that a bug could not send a packet."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.host import inside_namespace
from tests.host.alone import SOURCES, check_alone

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.requirement("C3.9", "C6.2"), pytest.mark.needs("unshare", "ip")]


def test_the_client_keeps_its_promises_in_a_network_of_its_own(tmp_path: Path) -> None:
    check_alone(inside_namespace, tmp_path)


def test_other_modules_can_be_imported_without_the_http_library() -> None:
    script = (
        "import sys, openfang.host.files, openfang.host.process, openfang.host.secrets;"
        "assert not {'aiohttp', 'cryptography', 'keyring'} & set(sys.modules)"
    )
    environment = {"PYTHONPATH": SOURCES}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=30)
