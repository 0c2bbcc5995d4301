"""`/api/skills`: instructions and tools that people add, what each may do, and changes of them."""

from __future__ import annotations

from openfang.edges.api.routes.installs import endpoints_of

ENDPOINTS = endpoints_of("skill", "/api/skills", "Skills")
