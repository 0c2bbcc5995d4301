"""Who calls, over which edge and in whose chain: how their calls are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.core.calls import Call
from openfang.core.labels import Labels
from openfang.core.trace import Chain, joined
from openfang.core.values import dataclass
from openfang.policy.context import NO_WISH, Wish, bind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.app.parts import Parts
    from openfang.core.calls import Caller
    from openfang.core.session import Options

ONE_SHOT: Final = "cli"


@dataclass(frozen=True, slots=True)
class Calling:
    """An open home and who uses it, over which edge."""

    parts: Parts
    caller: Caller
    chain: Chain
    edge: str = ONE_SHOT

    def make(
        self, tool: str, arguments: Mapping[str, Any], options: Options, *, task: str = ""
    ) -> Call:
        """Make a call of this caller's, for a task. A person typed it, so it has that label."""
        parts = self.parts
        chain, labels, peer = self._arrived(options)
        return Call(
            tool=tool,
            caller=self.caller,
            arguments=arguments,
            context=bind(self.caller, _wish(options), parts.config.policy.blacklist),
            chain=chain,
            run=options.run,
            labels=labels,
            admin_token=options.admin_token,
            edge=self.edge,
            patience=options.patience,
            progress=options.progress,
            client=options.client,
            meta=options.meta,
            task=task,
            peer=peer,
        )

    def _arrived(self, options: Options) -> tuple[Chain, Labels, str]:
        """Go on with the caller's chain; of most callers nothing is known and nothing is told."""
        parts, chain = self.parts, options.chain or self.chain
        hops = parts.hops
        if not chain.shared and not self.chain.shared and self.caller.id not in hops.book.peers:
            until = parts.clock.monotonic() + hops.seconds
            alone = Chain(trace_id=chain.trace_id, span_id=chain.span_id, deadline=until)
            return alone, Labels.USER_INPUT, ""
        arrived = hops.arrive(joined(chain, self.chain), self.caller)
        return arrived.chain, Labels.USER_INPUT | arrived.labels, arrived.peer


def _wish(options: Options) -> Wish:
    asks = options.mode or options.project or options.spec or options.task or options.blacklist
    if not asks:
        return NO_WISH
    return Wish(
        mode=options.mode,
        project_id=options.project,
        spec_hash=options.spec,
        task_id=options.task,
        blacklist=options.blacklist,
    )
