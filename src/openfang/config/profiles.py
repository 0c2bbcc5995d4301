"""What a profile grants: the tools of a kind of work, and what these need to be of use."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from openfang.config.manifest_parts import Capabilities
from openfang.core.ids import Kind, tool_id

ProfileName: TypeAlias = Literal["minimal", "coding", "research", "messaging", "automation", "full"]

_MINIMAL = ("file_read", "file_list")
_CODING = (*_MINIMAL, "file_write", "shell_exec", "web_fetch")
_RESEARCH = ("web_fetch", "web_search", "file_read", "file_write")
_MESSAGING = ("agent_send", "agent_list", "memory_store", "memory_recall")
_ALL = ("*",)


def _of(*tools: str) -> Capabilities:
    """Grant tools, and of network, shell, memory and agents what they work with."""
    needs: dict[str, Any] = {
        "network": any(tool.startswith("web_") for tool in tools) and _ALL,
        "shell": "shell_exec" in tools and _ALL,
        "agent_message": "agent_send" in tools and _ALL,
        "memory_read": "memory_recall" in tools and _ALL,
        "memory_write": "memory_store" in tools and ("self.*",),
    }
    return Capabilities(
        tools=tuple(tool_id(Kind.BUILTIN, tool) for tool in tools),
        **{need: grant for need, grant in needs.items() if grant},
    )


PROFILES: dict[ProfileName, Capabilities] = {
    "minimal": _of(*_MINIMAL),
    "coding": _of(*_CODING),
    "research": _of(*_RESEARCH),
    "messaging": _of(*_MESSAGING),
    "automation": _of(*dict.fromkeys((*_CODING, *_RESEARCH, *_MESSAGING))),
    "full": Capabilities(
        tools=_ALL,
        network=_ALL,
        memory_read=_ALL,
        memory_write=_ALL,
        agent_message=_ALL,
        agent_spawn=True,
        agent_kill=_ALL,
        shell=_ALL,
    ),
}
