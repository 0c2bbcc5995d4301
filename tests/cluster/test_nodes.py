"""Several nodes on one database: each with its own name and chain, all with the same state."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.cluster.house import homes

from openfang.cli.errors import ERROR

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Cli
    from tests.cluster.house import Cluster, Node

pytestmark = pytest.mark.requirement("C13.3")
META: Any = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}


def test_what_one_node_keeps_is_there_on_every_other(cluster: Cluster) -> None:
    assert "error" not in cluster["a"].call("memory_store", key="color", value="green")
    for name in "bc":
        assert "green" in json.dumps(cluster[name].call("memory_recall", key="color"))
    with cluster.client as client:
        found = [client.get("/api/status").json()["node"] for _ in range(6)]
    assert sorted(found) == ["a", "a", "b", "b", "c", "c"]


def test_every_node_has_a_chain_of_its_own_and_all_verify(cluster: Cluster) -> None:
    for node in cluster.nodes:
        node.call("system_time")
    verified = cluster["b"].cli("audit", "verify", "--json")
    assert (verified.code, verified.json["intact"]) == (0, True), verified.out
    counted = cluster["c"].cli.sql("SELECT node, COUNT(*) AS n FROM audit GROUP BY node")
    assert {"a", "b", "c"} < {row["node"] for row in counted}, counted


def test_a_home_that_joins_gets_a_name_and_keeps_it(
    make_home: Callable[[], Cli], empty_postgres: str
) -> None:
    first, second = homes(make_home, empty_postgres, "ab")
    (first.cli.home / "node").rename(first.cli.home / "node.before")
    for cli in (first.cli, second.cli):
        config = cli.home / "config.toml"
        config.write_text(config.read_text().replace("node =", "# node ="))
        assert cli.call("system_time").code == 0
    names = [(node.cli.home / "node").read_text().strip() for node in (first, second)]
    assert len(set(names)) == len(names)
    assert second.cli.call("system_time").code == 0
    assert second.cli("status", "--json").json["node"] == names[1]
    said = second.cli.call("system_time", env={"OPENFANG_NODE": "chosen"})
    assert said.code == 0
    (second.cli.home / "node").write_text("not a name\n")
    refused = second.cli.call("system_time")
    assert (refused.code, "holds no name of a node" in refused.out) == (ERROR, True)
    (second.cli.home / "node").unlink()
    chains = second.cli.sql("SELECT DISTINCT node FROM audit")
    assert {*names, "chosen"} < {row["node"] for row in chains}


def test_a_home_that_is_moved_keeps_its_name_on_the_server(
    make_home: Callable[[], Cli], empty_postgres: str
) -> None:
    home = make_home()
    before = home("status", "--json").json["node"]
    assert home("storage", "migrate", "--to", empty_postgres).code == 0
    assert (home.home / "node").read_text().strip() == before


def test_an_agent_that_waits_at_one_node_is_known_to_wait_at_every_other(cluster: Cluster) -> None:
    (name,) = {known_elsewhere_as(node) for node in cluster.nodes}
    waits = json.dumps({"depth": 2, "ancestors": [f"agent:assistant@{name}"]})
    for node in cluster.nodes:
        with node.client as client:
            answer = client.post(
                "/api/tools/agent:assistant/call",
                json={"arguments": {"message": "come back"}},
                headers={"OpenFang-Chain": waits},
            )
        assert (answer.status_code, answer.json()["rule"]) == (429, "reentry"), answer.text


def known_elsewhere_as(node: Node) -> str:
    """Say by which name the tools that a node lists are known to have come by it."""
    with node.client as client:
        listed = client.post(
            "/mcp",
            json={"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}},
            headers={
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": META["io.modelcontextprotocol/protocolVersion"],
                "Mcp-Method": "tools/list",
            },
        )
    (name,) = listed.json()["result"]["tools"][0]["_meta"]["openfang/via"]
    return name
