"""Every endpoint of the API, in the order in which they are looked through."""

from __future__ import annotations

from openfang.edges.api.openapi import with_document
from openfang.edges.api.routes import approvals, audit, keys, mcp, node, specs, tools

ENDPOINTS = with_document(
    (
        *node.ENDPOINTS,
        *tools.ENDPOINTS,
        *mcp.ENDPOINTS,
        *approvals.ENDPOINTS,
        *specs.ENDPOINTS,
        *keys.ENDPOINTS,
        *audit.ENDPOINTS,
    )
)
