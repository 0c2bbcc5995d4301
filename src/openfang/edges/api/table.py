"""Every endpoint of the API, in the order in which they are looked through."""

from __future__ import annotations

from openfang.edges.api.openapi import with_document
from openfang.edges.api.routes import (
    a2a,
    agents,
    approvals,
    audit,
    extensions,
    held,
    keys,
    mcp,
    memory,
    node,
    nodes,
    oauth,
    schedules,
    secrets,
    sessions,
    skills,
    specs,
    tools,
    usage,
)

ENDPOINTS = with_document(
    (
        *node.ENDPOINTS,
        *nodes.ENDPOINTS,
        *tools.ENDPOINTS,
        *mcp.ENDPOINTS,
        *held.ENDPOINTS,
        *extensions.ENDPOINTS,
        *skills.ENDPOINTS,
        *agents.ENDPOINTS,
        *sessions.ENDPOINTS,
        *memory.ENDPOINTS,
        *schedules.ENDPOINTS,
        *usage.ENDPOINTS,
        *a2a.ENDPOINTS,
        *approvals.ENDPOINTS,
        *specs.ENDPOINTS,
        *keys.ENDPOINTS,
        *secrets.ENDPOINTS,
        *audit.ENDPOINTS,
        *oauth.ENDPOINTS,
    )
)
