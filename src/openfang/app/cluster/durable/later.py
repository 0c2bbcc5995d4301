"""The queues of tasks, opened by a daemon where there are any: nobody else imports DBOS."""

from __future__ import annotations

from dataclasses import field
from importlib.util import find_spec
from typing import TYPE_CHECKING

import anyio

from openfang.core.errors import HomeError
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from openfang.app.parts import Parts


@dataclass(slots=True)
class LaterQueues:
    """Opens them once, in a task of its own."""

    parts: Parts
    _wanted: anyio.Event = field(init=False, default_factory=anyio.Event)

    def want(self) -> None:
        """Have tasks worked on by queues from now on, if this home has them."""
        if has_queues(self.parts):
            self._wanted.set()

    async def run(self) -> None:
        """Wait until they are wanted, and keep them until the node ends."""
        await self._wanted.wait()
        from openfang.app.cluster.durable.engine import Durable  # noqa: PLC0415 - few have any
        from openfang.app.cluster.durable.standing import Standing  # noqa: PLC0415 - as above

        assert self.parts.members is not None  # noqa: S101 - who is on a server has them
        engine = Durable(parts=self.parts, standing=Standing(self.parts.members))
        self.parts.tasks.engine = engine
        await engine.run()


def has_queues(parts: Parts) -> bool:
    """Whether tasks of this home go on queues; what is configured and cannot be is refused."""
    config = parts.config
    engine, server = config.cluster.engine, config.storage.file(parts.home.path) is None
    installed = find_spec("dbos") is not None
    if engine == "dbos" and not server:
        raise HomeError(
            'cluster.engine = "dbos": queues are kept by a Postgres server, and this home has a '
            "file.",
            way_out='openfang storage migrate --to URL, or cluster.engine = "auto"',
        )
    if engine == "dbos" and not installed:
        raise HomeError(
            'cluster.engine = "dbos": DBOS is not installed.',
            way_out="pip install 'openfang[scale]'",
        )
    return engine != "inline" and server and installed
