"""Odd credentials and odd chains from the environment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from openfang.app.auth.identify import identify
from openfang.app.environment import incoming_chain
from openfang.core.errors import Unauthenticated
from openfang.core.session import Options
from openfang.testing import open_test_app

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C18.1")


@pytest.mark.parametrize("config", ["", 'api_key = "a-key-of-my-own"\n'])
@pytest.mark.parametrize("secret", ["schl\xfcssel", os.fsdecode(b"of_\xff"), "\ud800", "a\0b"])
async def test_a_key_of_any_bytes_is_nobodys(tmp_path: Path, config: str, secret: str) -> None:
    async with open_test_app(tmp_path / "home", config=config) as app:
        with pytest.raises(Unauthenticated):
            await identify(app.parts, secret, "api")
        assert await app.parts.keys.find_token(secret) is None


def test_ancestors_that_are_not_plain_names_are_dropped() -> None:
    sent = ["agent:a", "", "b c", "d\ne", "\xe9", os.fsdecode(b"\xff"), "e" * 201, "f" * 200]
    chain = incoming_chain({"OPENFANG_CHAIN": ",".join(sent)})
    assert chain.ancestors == ("agent:a", "f" * 200)


def test_an_admin_token_is_not_shown() -> None:
    assert "oft_secret" not in repr(Options(admin_token="oft_secret"))
