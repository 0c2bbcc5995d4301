"""The operator's own classes: custom gates, adapters and audit handlers, loaded from files."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

from openfang.core.errors import ConfigError
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from openfang.config.node import Plugin
    from openfang.core.calls import Call
    from openfang.core.decisions import Decision
    from openfang.core.ports import Gate
    from openfang.core.tools import Tool


def load_plugin(plugin: Plugin) -> Any:  # noqa: ANN401 - somebody else's class
    """Make one object of the operator's class."""
    spec = importlib.util.spec_from_file_location(
        f"openfang_plugin_{plugin.path.stem}", plugin.path
    )
    if spec is None or spec.loader is None or not plugin.path.is_file():
        raise _wrong(plugin, "the file does not exist")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        return getattr(module, plugin.name)()
    except AttributeError as error:
        raise _wrong(plugin, f"the file has no class {plugin.name} ({error})") from error
    except Exception as error:
        raise _wrong(plugin, f"{type(error).__name__}: {error}") from error


def load_gates(plugins: Iterable[Plugin]) -> tuple[Gate, ...]:
    """Load custom gates; an object that is a gate of another dialect says so by `as_gate`."""
    return tuple(as_gate(load_plugin(plugin)) for plugin in plugins)


def as_gate(candidate: Any) -> Gate:  # noqa: ANN401 - somebody else's object
    """Turn an object with a `check` into a gate with a name."""
    if hasattr(candidate, "as_gate"):
        return candidate.as_gate()
    return candidate if hasattr(candidate, "name") else _Named(type(candidate).__name__, candidate)


@dataclass(frozen=True, slots=True)
class _Named:
    name: str
    gate: Gate

    def check(self, tool: Tool, call: Call) -> Decision:
        """Ask the gate."""
        return self.gate.check(tool, call)


def _wrong(plugin: Plugin, why: str) -> ConfigError:
    return ConfigError(
        f"The plugin {plugin} cannot be used: {why}.", way_out="mend it in [plugins]"
    )
