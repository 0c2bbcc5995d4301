"""The seed's adapter: risk and side effects from a name and a description, and both its shapes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from openfang.compat.words import (
    MCPResult,
    MCPTool,
    RiskLevel,
    ToolDescriptor,
    ToolResult,
    ToolSource,
)
from openfang.core.ids import Kind
from openfang.core.tools import Risk, Trust
from openfang.registry.classify import Declared, ForeignTool, classify, harm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.compat.config import MCPServerConfig
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

    def mcp_tool_to_descriptor(
        self,
        server_id: str,
        mcp_tool: Mapping[str, Any] | MCPTool,
        server_config: MCPServerConfig | None = None,
    ) -> ToolDescriptor:
        """Describe a tool of a server's list by its name and description alone."""
        tool = _tool(mcp_tool)
        described = ToolDescriptor(
            tool_id=f"mcp:{server_id}:{tool.name}",
            name=tool.name,
            description=tool.description,
            input_schema=tool.input_schema,
            output_schema=tool.output_schema,
            risk_level=self.infer_risk_level(tool.name, tool.description),
            side_effect_tags=self.infer_side_effects(tool.name, tool.description),
            source_type=ToolSource.MCP,
            source_id=server_id,
            enabled=server_config is None or _allowed(server_config, tool.name),
        )
        return (
            described
            if server_config is None
            else replace(described, timeout_ms=server_config.timeout_ms)
        )

    @staticmethod
    def mcp_result_to_tool_result(
        mcp_result: Mapping[str, Any] | MCPResult,
        invocation_id: str = "",
        descriptor: ToolDescriptor | None = None,
        duration_ms: int = 0,
    ) -> ToolResult:
        """Say a server's answer as a result: structured, else its one text, else all its parts."""
        result = _result(mcp_result)
        return ToolResult(
            success=not result.is_error,
            payload=_payload(result),
            error=(result.text or "The tool failed.") if result.is_error else None,
            invocation_id=invocation_id,
            declared_side_effects=tuple(descriptor.side_effect_tags) if descriptor else (),
            duration_ms=duration_ms,
        )

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


def _tool(listed: Mapping[str, Any] | MCPTool) -> MCPTool:
    if isinstance(listed, MCPTool):
        return listed
    return MCPTool(
        name=listed["name"],
        description=listed.get("description") or "",
        input_schema=listed.get("inputSchema") or {},
        output_schema=listed.get("outputSchema"),
        title=listed.get("title"),
    )


def _result(answer: Mapping[str, Any] | MCPResult) -> MCPResult:
    if isinstance(answer, MCPResult):
        return answer
    return MCPResult(
        content=tuple(answer.get("content") or ()),
        structured_content=answer.get("structuredContent"),
        is_error=answer.get("isError") is True,
    )


def _payload(result: MCPResult) -> Any:  # noqa: ANN401 - any JSON
    if result.structured_content is not None:
        return result.structured_content
    kinds = [part.get("type") for part in result.content]
    return result.text if kinds == ["text"] else list(result.content)


def _allowed(config: MCPServerConfig, tool: str) -> bool:
    return not config.allow_tools or tool in config.allow_tools


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
