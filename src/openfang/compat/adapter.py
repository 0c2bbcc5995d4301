"""The seed's adapter, as far as it judges: risk and side effects from a name and a description."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from openfang.compat.words import RiskLevel
from openfang.core.ids import Kind
from openfang.core.tools import Risk, Trust
from openfang.registry.classify import Declared, ForeignTool, classify, harm

if TYPE_CHECKING:
    from openfang.core.tools import Tool
    from openfang.registry.classify import Classified


class MCPAdapter:
    """Judges an MCP server's tool. Subclass it, and name the subclass in `[plugins] adapters`."""

    @staticmethod
    def infer_risk_level(tool_name: str, description: str) -> RiskLevel:
        """Infer the risk, by whole words."""
        return RiskLevel(_read(tool_name, description).risk)

    @staticmethod
    def infer_side_effects(tool_name: str, description: str) -> list[str]:
        """Infer the side-effect tags, by whole words."""
        return sorted(_read(tool_name, description).tags)

    def adapt(self, tool: Tool) -> Tool:
        """Correct a classified tool where a subclass judges otherwise than the default.

        Where it does not, what annotations, manifest and operator said stays.
        """
        if tool.kind is not Kind.MCP:
            return tool
        said = (tool.name, tool.description)
        risk, tags = self.infer_risk_level(*said), self.infer_side_effects(*said)
        return _corrected(
            tool,
            risk=tool.risk if risk == MCPAdapter.infer_risk_level(*said) else Risk(risk),
            tags=tool.tags if tags == MCPAdapter.infer_side_effects(*said) else frozenset(tags),
        )


def _corrected(tool: Tool, *, risk: Risk, tags: frozenset[str]) -> Tool:
    """Change what follows from the tags as well: new ones may reach a worse sink."""
    if (risk, tags) == (tool.risk, tool.tags):
        return tool
    foreign = ForeignTool(
        kind=tool.kind, source=tool.source, name=tool.name, input_schema=tool.input_schema
    )
    verdict = classify(foreign, trust=tool.trust, overrides=Declared(risk=risk, tags=tags))
    worse = harm(verdict.sink.effect) > harm(tool.sink.effect)
    return replace(
        tool,
        risk=risk,
        tags=tags,
        sink=verdict.sink if worse else tool.sink,
        labels=tool.labels | verdict.labels,
    )


def _read(name: str, description: str) -> Classified:
    foreign = ForeignTool(kind=Kind.MCP, source="", name=name, description=description)
    return classify(foreign, trust=Trust.MEDIUM)
