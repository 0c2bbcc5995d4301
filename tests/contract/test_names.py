"""Names: what tools are called in the log and on the wire, and that all of them stay callable."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest
from tests.contract.house import House, house, server

if TYPE_CHECKING:
    from pathlib import Path

TRIO = {"mcp:a:b_c", "mcp:a-b:c", "mcp:a_b:C"}
SERVERS = {"a": "b_c", "a-b": "c", "a_b": "C"}
WIRE = re.compile(r"[a-z0-9_]{1,64}")


def servers(*order: str) -> str:
    return "\n".join(server(name, SERVERS[name]) for name in order)


def suffixed(name: str, canonical: str) -> str:
    """The name of a later claimant."""
    return f"{name}_{sha256(canonical.encode()).hexdigest()[:6]}"


@pytest.mark.requirement("C1.1", "C1.2")
def test_each_kind_of_tool_has_its_canonical_id_and_its_name_on_the_wire(node: House) -> None:
    names = {id_: tool["name"] for id_, tool in node.tools().items()}
    assert names["builtin:file_read"] == "file_read"
    assert names["agent:echo"] == "openfang_agent_echo"
    assert names["a2a:Next-Door"] == "a2a_next_door"
    assert names["mcp:a-b:Größe!"] == "mcp_a_b_gr__e_"
    assert sorted(names.values()) == sorted(node.wire_names())
    assert all(WIRE.fullmatch(name) for name in names.values())


@pytest.mark.requirement("C1.1")
def test_policy_and_configuration_know_tools_by_their_canonical_ids(node: House) -> None:
    reader = node.guest("reader", tools=["mcp:a-b:*", "agent:echo"])
    assert set(reader.tools()) == {"mcp:a-b:c", "mcp:a-b:Größe!", "agent:echo"}
    assert reader.call("mcp:a:b_c").status == 404
    called = reader.call(reader.tools()["mcp:a-b:c"]["name"], {"text": "x"}).json
    assert {one["tool"] for one in node.records(call=called["call_id"])} == {"mcp:a-b:c"}


@pytest.mark.requirement("C1.3", "C1.5")
def test_three_who_claim_one_name_stay_callable_and_a_warning_names_both(node: House) -> None:
    names = {id_: tool["name"] for id_, tool in node.tools().items() if id_ in TRIO}
    plain = [id_ for id_, name in names.items() if name == "mcp_a_b_c"]
    later = names.keys() - set(plain)
    assert (len(names), len(plain)) == (3, 1)
    assert all(names[id_] == suffixed("mcp_a_b_c", id_) for id_ in later)
    said = [line["message"] for line in node.log() if line["level"] == "warning"]
    for id_ in later:
        assert [text for text in said if f"{plain[0]} and {id_}" in text]
    for id_, name in names.items():
        answer = node.use(name, {"errand": "pid"})["result"]["content"]
        assert node.use(id_, {"errand": "pid"})["result"]["content"] == answer
        assert node.call(id_, {"errand": "pid"}).json["content"] == answer


@pytest.mark.requirement("C1.3")
def test_a_name_that_is_too_long_is_cut_and_gets_a_suffix(node: House) -> None:
    name = node.tools()[f"mcp:a_b:{'x' * 80}"]["name"]
    assert len(name) == 64
    assert name.endswith(suffixed("x", f"mcp:a_b:{'x' * 80}"))
    assert node.use(name, {"text": "long"})["result"]["content"][0]["text"] == "long"


@pytest.mark.requirement("C1.3")
def test_names_are_kept_over_restarts_in_any_order(tmp_path: Path) -> None:
    with house(tmp_path, servers("a")) as running:
        running.connected("a")
    with house(tmp_path, servers("a_b", "a-b", "a"), again=True) as running:
        running.connected(*SERVERS)
        names = {id_: tool["name"] for id_, tool in running.tools().items()}
    assert names["mcp:a:b_c"] == "mcp_a_b_c"
    assert all(names[id_] == suffixed("mcp_a_b_c", id_) for id_ in ("mcp:a-b:c", "mcp:a_b:C"))
    assert names["builtin:file_read"] == "file_read"
