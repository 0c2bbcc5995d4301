"""The home as a local command uses it: one caller, in process, no daemon."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from openfang.app.admin import Admin
from openfang.app.home import Home
from openfang.app.identify import credential, identify
from openfang.app.lifespan import open_app
from openfang.config.load import find_home
from openfang.core.calls import Call
from openfang.core.labels import Labels
from openfang.core.trace import Chain, read_chain
from openfang.pipeline.shape import URI_PREFIX
from openfang.policy.context import NO_WISH, Wish, bind

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from openfang.app.build import Parts
    from openfang.core.calls import Caller
    from openfang.core.decisions import Explanation
    from openfang.core.results import Result

_DEPTH_LIMIT = 64


@dataclass(frozen=True, slots=True)
class Local:
    """An open home and who uses it."""

    parts: Parts
    caller: Caller
    chain: Chain

    @property
    def admin(self) -> Admin:
        """What only an administrator may do; refuses everybody else."""
        return Admin(self.parts, self.caller)

    def call(self, tool: str, arguments: Mapping[str, Any], options: Options) -> Call:
        """Make a call of this caller's. A person typed it, so it carries that label."""
        return Call(
            tool=tool,
            caller=self.caller,
            arguments=arguments,
            context=bind(self.caller, options.wish, self.parts.config.policy.blacklist),
            chain=self._chain(),
            run=options.run,
            labels=Labels.USER_INPUT,
            admin_token=options.admin_token,
            edge="cli",
            patience=options.patience,
        )

    def _chain(self) -> Chain:
        now = self.parts.clock.monotonic()
        deadline = now + self.parts.config.guard.deadline_secs
        return replace(self.chain, deadline=deadline)

    async def invoke(self, call: Call) -> Result:
        """Take the one path."""
        return await self.parts.pipeline.invoke(call)

    async def explain(self, call: Call) -> Explanation:
        """Decide, and do nothing."""
        return await self.parts.pipeline.explain(call)

    def whole_result(self, uri: str) -> bytes | None:
        """Read the whole of a result that was cut, as JSON, while it is kept."""
        blob = uri.removeprefix(URI_PREFIX)
        found = self.parts.blobs.get(blob, self.caller.id, self.parts.clock.time_ns())
        return found[0] if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a command may choose for its calls."""

    wish: Wish = NO_WISH
    run: str | None = None
    admin_token: str | None = None
    patience: float = 0.0


def incoming_chain(environ: Mapping[str, str]) -> Chain:
    """Continue the chain of whoever started this command, if one of our tools did."""
    ancestors = tuple(filter(None, environ.get("OPENFANG_CHAIN", "").split(",")))
    return read_chain(
        traceparent=environ.get("TRACEPARENT"),
        starry_id=environ.get("X_OPENSTARRY_TRACE_ID"),
        ancestors=ancestors[:_DEPTH_LIMIT],
    )


@asynccontextmanager
async def open_local(environ: Mapping[str, str] | None = None) -> AsyncGenerator[Local]:
    """Open the home of the environment, as the holder of its key."""
    environ = os.environ if environ is None else environ
    home = Home(find_home(environ))
    async with open_app(home, environ) as parts:
        caller = identify(parts, credential(home, environ))
        yield Local(parts, caller, incoming_chain(environ))
