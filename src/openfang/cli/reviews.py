"""What a person is shown of an extension or a skill before it may run, and the question."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from openfang.cli.errors import Usage
from openfang.cli.held import reasons
from openfang.cli.output import clean, fields, first_sentence, is_terminal, note, paint, say, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MOST_FILES: Final = 40
_KIB: Final = 1024


def show_review(review: Mapping[str, Any]) -> None:
    """Print all of it: what it is, its files, its tools, what it may, and what was found."""
    facts = {
        "id": review["id"],
        "version": review["version"],
        "title": review["title"],
        "about": review["description"],
        "author": review["author"],
        "license": review["license"],
        "runs as": review["runtime"],
        "sandbox": review["sandbox"],
        "it may": "\n".join(review["may"]),
        "comes from": review["origin"],
        "digest": review["digest"],
        "notes": "\n".join(review["notes"]),
    }
    fields({word: value for word, value in facts.items() if value})
    _show_tools(review["tools"])
    _show_files(review["files"])
    _show_reasons(review)


def _show_tools(tools: Sequence[Mapping[str, Any]]) -> None:
    if tools:
        say()
        rows = [
            (
                tool["name"],
                tool["risk"],
                ", ".join(tool["side_effects"]) or "none",
                first_sentence(tool["description"]),
            )
            for tool in tools
        ]
        table(("tool", "risk", "side effects", "what it does"), rows)


def _show_files(files: Sequence[Mapping[str, Any]]) -> None:
    say()
    shown = files[:_MOST_FILES]
    rows = [(one["path"], _size(one["size"]), _program(one)) for one in shown]
    table(("file", "size", ""), rows)
    if len(files) > len(shown):
        say(f"and {len(files) - len(shown)} more: --json shows all")


def _program(file: Mapping[str, Any]) -> str:
    return "executable" if file["executable"] else ""


def _size(size: int) -> str:
    return f"{size} B" if size < _KIB else f"{size / _KIB:.0f} KiB"


def _show_reasons(review: Mapping[str, Any]) -> None:
    if review["changes"]:
        say("\nDiffers from what was accepted:")
    elif review["findings"]:
        say("\nFound:")
    for line in reasons(review):
        say(line)
    for why in review["grave"]:
        note(f"a plain yes is not enough: {why}")


def asked(review: Mapping[str, Any], *, yes: bool, accept_findings: bool) -> bool:
    """Ask whether it is accepted so; what is grave wants its name typed, or the option."""
    if accept_findings or (yes and not review["grave"]):
        return True
    id_ = review["id"]
    if yes or not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        option = "--accept-findings" if review["grave"] else "--yes"
        why = "a plain yes is not enough" if yes else "nobody said yes"
        raise Usage(f"{id_} is not enabled: {why}.", way_out=f"look at it, then {option}")
    wanted = id_ if review["grave"] else "yes"
    sys.stdout.flush()
    question = f"Accept {clean(id_)} as shown? Type {wanted}: "
    print(paint(question, "bold", sys.stderr), end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip() == wanted
