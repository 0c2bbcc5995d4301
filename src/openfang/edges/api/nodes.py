"""The shapes of nodes that share a database, as JSON Schema."""

from __future__ import annotations

from openfang.edges.api.schemas import COUNT, TEXT, Schema, one_of, page, ref, whole

COMPONENTS: dict[str, Schema] = {
    "Node": whole(
        {
            "node": TEXT,
            "state": one_of("alive", "draining", "dead", "left"),
            "address": TEXT,
            "version": TEXT,
            "schema": COUNT,
            "started_at": {"type": "string", "format": "date-time"},
            "heard_secs": {"type": "number"},
        }
    ),
    "Nodes": page("nodes", ref("Node")),
}
