"""The folder that a caller's files are in, and which paths of it are closed to the caller."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from openfang.core.decisions import Deny
from openfang.core.values import dataclass
from openfang.host.files import FileRefused, Folder
from openfang.safety.paths import components, is_closed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from openfang.core.calls import Call, Caller

_LONGEST_SHOWN = 200
PATH = {
    "type": "string",
    "minLength": 1,
    "maxLength": 4096,
    "description": "Relative to your workspace.",
}


@dataclass(frozen=True, slots=True)
class Workspaces:
    """Opens the folder of a caller's space, which `find` finds."""

    find: Callable[[str], Path]

    def open(self, caller: Caller) -> closing[Folder]:
        """Open it; it is made where it is not there yet. It blocks: use it in a thread."""
        root = self.find(caller.space)
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        return closing(Folder(root))

    def grant(self, call: Call) -> Deny | None:
        """A path of the workspace is the caller's own, unless its grants say otherwise."""
        path = str(call.arguments.get("path", "."))
        if not self.closed(call.caller, path):
            return None
        return Deny(
            f"{path[:_LONGEST_SHOWN]} is closed to {call.caller.id}",
            "path_closed",
            "another file; capabilities.deny_paths of its manifest says which are closed",
        )

    def closed(self, caller: Caller, path: str) -> bool:
        """Whether its grants close a path to the caller."""
        closed = caller.grants.closed
        if not closed:
            return False
        root = str(self.find(caller.space))
        try:
            names = components(path, root=root)
        except FileRefused:
            return False  # no path of the workspace: the tool itself says what is wrong with it
        return is_closed(names, closed, root=root)
