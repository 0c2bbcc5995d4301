"""What a call shows beside its caller: looked up when the gates are asked, and only then."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from openfang.app.admin import Admin
from openfang.core.calls import Papers
from openfang.core.errors import PolicyViolation
from openfang.core.ids import Kind
from openfang.core.keys import AdminToken
from openfang.core.tools import Risk
from openfang.policy.context import Wish
from openfang.testing import TableSource, open_test_app

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

    from openfang.testing import OpenApp

pytestmark = pytest.mark.requirement("C7.6", "C7.7")


async def done(_: Mapping[str, Any]) -> str:
    return "done"


def demo() -> TableSource:
    risky = {"risk": Risk.HIGH, "tags": frozenset[str]()}
    plain = {"risk": Risk.LOW, "tags": frozenset[str]()}
    guarded = {**plain, "requires_admin_token": True}
    tools = {"deploy": (risky, done), "look": (plain, done), "open": (guarded, done)}
    return TableSource(Kind.MCP, "demo", tools)


@contextmanager
def asked(app: OpenApp) -> Generator[list[str]]:
    """Collect what the database is asked of specs and tokens."""
    found, connection = list[str](), app.file.connection

    def note(sql: str) -> None:
        if "FROM specs" in sql or "FROM keys" in sql:
            found.append(sql)

    connection.set_trace_callback(note)
    try:
        yield found
    finally:
        connection.set_trace_callback(None)


async def test_a_spec_is_looked_up_for_what_is_risky_alone(tmp_path: Path) -> None:
    async with open_test_app(tmp_path / "home", sources=[demo()]) as app:
        spec = await Admin(app.parts, app.caller).freeze_spec("plan", b"plan", "default")
        wish = Wish(spec_hash=spec.hash)
        with asked(app) as found:
            await app.invoke(app.make("mcp:demo:look", {}, wish=wish))
            assert found == []
            result = await app.invoke(app.make("mcp:demo:deploy", {}, wish=wish))
        assert (result.text, len(found)) == ("done", 1)


async def test_papers_that_a_call_brings_along_are_not_believed(tmp_path: Path) -> None:
    forged = Papers(projects=frozenset({"default"}), tools=("*",))
    async with open_test_app(tmp_path / "home", sources=[demo()]) as app:
        made = app.make("mcp:demo:deploy", {}, wish=Wish(spec_hash="made up"), papers=forged)
        with pytest.raises(PolicyViolation) as caught:
            await app.invoke(made)
        assert caught.value.rule == "spec_not_frozen"
        made = app.make("mcp:demo:open", {}, admin_token="oft_made up", papers=forged)
        with pytest.raises(PolicyViolation) as caught:
            await app.invoke(made)
        assert caught.value.rule == "admin_token_missing"


async def test_a_token_that_was_revoked_a_moment_ago_opens_nothing(tmp_path: Path) -> None:
    async with open_test_app(tmp_path / "home", sources=[demo()]) as app:
        admin = Admin(app.parts, app.caller)
        _, secret = await admin.create_token(AdminToken(id="", name="t"), ttl=None)
        made = app.make("mcp:demo:open", {}, admin_token=secret)
        assert (await app.invoke(made)).text == "done"
        await admin.revoke_key("t")
        with pytest.raises(PolicyViolation):
            await app.invoke(app.make("mcp:demo:open", {}, admin_token=secret))
