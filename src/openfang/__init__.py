"""One governed path between agents, their tools and the world.

Everything here is imported when it is first used.

    async with openfang.open_local() as local:
        result = await local.call("system_time", {})
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from openfang.version import __version__

if TYPE_CHECKING:
    from openfang.app.local import Local, open_local
    from openfang.core.calls import Call, Caller, Mode
    from openfang.core.errors import CallFailed, CallRefused, OpenFangError, Parked
    from openfang.core.labels import Labels
    from openfang.core.results import Result
    from openfang.core.session import Options
    from openfang.core.tools import Risk, Tool

__all__ = [
    "Call",
    "CallFailed",
    "CallRefused",
    "Caller",
    "Labels",
    "Local",
    "Mode",
    "OpenFangError",
    "Options",
    "Parked",
    "Result",
    "Risk",
    "Tool",
    "__version__",
    "open_local",
]

_HOMES = {
    "Call": "openfang.core.calls",
    "CallFailed": "openfang.core.errors",
    "CallRefused": "openfang.core.errors",
    "Caller": "openfang.core.calls",
    "Labels": "openfang.core.labels",
    "Local": "openfang.app.local",
    "Mode": "openfang.core.calls",
    "OpenFangError": "openfang.core.errors",
    "Options": "openfang.core.session",
    "Parked": "openfang.core.errors",
    "Result": "openfang.core.results",
    "Risk": "openfang.core.tools",
    "Tool": "openfang.core.tools",
    "open_local": "openfang.app.local",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
