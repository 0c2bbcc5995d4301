"""What the web page is handed beside the node: calls and figures, as its log has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.core.bookmarks import Bookmark
    from openfang.core.calls import Caller
    from openfang.core.watching import CallFilter, CallPage, CallStory, Figures, SeenCall


class Watch(Protocol):
    """Calls as the log has them: everybody's for auditors and administrators, else one's own."""

    @property
    def several(self) -> bool:
        """Whether several nodes may write the log: then it is told which did."""
        ...

    async def nodes(self, caller: Caller) -> Sequence[Mapping[str, Any]]:
        """Show the nodes that share the database, and how each is; none where there is one."""
        ...

    async def calls(self, caller: Caller, wanted: CallFilter) -> CallPage:
        """Find calls, the newest first."""
        ...

    async def call(self, caller: Caller, call_id: str) -> CallStory:
        """Tell all of one call; another's does not exist."""
        ...

    async def newer(
        self, caller: Caller, after: Bookmark | None
    ) -> tuple[Sequence[SeenCall], Bookmark]:
        """Find the calls of which something was written since, and say up to which records.

        Without a bookmark none are wanted: it is where whoever comes now begins.
        """
        ...

    async def rules(self, caller: Caller) -> Sequence[Mapping[str, Any]]:
        """Show the operator's rules that are in force."""
        ...

    async def replay(self, caller: Caller, draft: str) -> Mapping[str, Any]:
        """Hold the newest calls against a draft of rules: what would be decided otherwise."""
        ...

    async def figures(self, caller: Caller, minutes: int, source: str = "") -> Figures:
        """Add up what happened in the last minutes; with latencies of one source alone."""
        ...
