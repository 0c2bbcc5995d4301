"""Other people's corrections to a classification (C7.15): they may raise, and rarely lower."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from openfang.core.tools import Risk, Sink, Tool, Trust
from openfang.registry.classify import harm
from openfang.registry.rules import UNKNOWN, check_tags

if TYPE_CHECKING:
    from collections.abc import Iterable

_log = logging.getLogger("openfang.registry")


class Adapter(Protocol):
    """Looks at a classified tool and answers what it should be."""

    def adapt(self, tool: Tool) -> Tool:
        """Return the tool, changed by `replace`. Who a tool is cannot be changed here."""
        ...


def apply_adapters(tool: Tool, adapters: Iterable[Adapter]) -> Tool:
    """Ask each in turn. One that fails leaves the tool as it was, and its effects unknown."""
    for adapter in adapters:
        tool = _apply(tool, adapter)
    return tool


def _apply(tool: Tool, adapter: Adapter) -> Tool:
    merge = _lowered if tool.trust is Trust.HIGH else _raised
    try:
        return _settled(merge(tool, _checked(adapter.adapt(tool))))
    except Exception:  # noqa: BLE001 - an adapter is other people's code
        _log.exception("Adapter %s failed on %s", type(adapter).__name__, tool.id)
        return replace(tool, tags=tool.tags | UNKNOWN)


def _checked(wanted: object) -> Tool:
    if not isinstance(wanted, Tool):
        raise TypeError(f"adapt() returned {type(wanted).__name__}, not a Tool")
    return replace(wanted, risk=Risk(wanted.risk), tags=check_tags(wanted.tags))


def _lowered(tool: Tool, wanted: Tool) -> Tool:
    """Take the adapter's word, both ways."""
    return replace(
        tool,
        risk=wanted.risk,
        tags=wanted.tags,
        sink=wanted.sink,
        labels=wanted.labels,
        denied_tags=tool.denied_tags | wanted.denied_tags,
        requires_admin_token=wanted.requires_admin_token or _newly_critical(tool, wanted),
        enabled=tool.enabled and wanted.enabled,
    )


def _raised(tool: Tool, wanted: Tool) -> Tool:
    """Take what makes the tool more dangerous, and ignore the rest."""
    return replace(
        tool,
        risk=max(tool.risk, wanted.risk),
        tags=tool.tags | wanted.tags,
        sink=_worse(tool.sink, wanted.sink),
        labels=tool.labels | wanted.labels,
        denied_tags=tool.denied_tags | wanted.denied_tags,
        requires_admin_token=tool.requires_admin_token
        or wanted.requires_admin_token
        or _newly_critical(tool, wanted),
        enabled=tool.enabled and wanted.enabled,
    )


def _worse(ours: Sink, theirs: Sink) -> Sink:
    effect = max(ours.effect, theirs.effect, key=harm)
    return Sink(effect=effect, targets=tuple(dict.fromkeys(ours.targets + theirs.targets)))


def _newly_critical(tool: Tool, wanted: Tool) -> bool:
    return wanted.risk is Risk.CRITICAL and tool.risk is not Risk.CRITICAL


def _settled(tool: Tool) -> Tool:
    """Whoever is dangerous has an effect (C11.2)."""
    silent = tool.risk >= Risk.HIGH and not tool.effects
    return replace(tool, tags=tool.tags | UNKNOWN) if silent else tool
