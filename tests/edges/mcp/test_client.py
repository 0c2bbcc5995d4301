"""Which client a call comes from: those of one key are told apart by their connections."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from openfang.core.deadline import Deadline
from openfang.edges.mcp.client import told_to
from openfang.edges.mcp.context import Context, Talk, in_talk
from openfang.pipeline.patience import Patient

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.edges.mcp.ports import Link, Offer

pytestmark = pytest.mark.requirement("C1.6")
CAN: Mapping[str, Any] = {"elicitation": {}}
OFFER = cast("Offer", SimpleNamespace(caller=SimpleNamespace(id="local-mcp")))
LINK = cast("Link", SimpleNamespace(open=True))


def connection(context: Context) -> str:
    client = told_to(context)
    assert client is not None
    assert client.key == "local-mcp"
    assert Patient(client, Deadline(1)).connection == client.connection
    return client.connection


def test_all_requests_of_a_talk_come_from_one_client_and_those_of_two_from_two() -> None:
    one, another = (Talk(capabilities=CAN, lasting=True) for _ in range(2))
    first, second, other = (connection(in_talk(OFFER, LINK, talk)) for talk in (one, one, another))
    assert first == second
    assert first != other


def test_a_request_that_is_part_of_no_talk_is_one_by_itself() -> None:
    alone = Context(offer=OFFER, link=LINK, version="2026-07-28", capabilities=CAN, run="a run")
    single = in_talk(OFFER, LINK, Talk(capabilities=CAN))
    assert len({connection(context) for context in (alone, alone, single, single)}) == 4
