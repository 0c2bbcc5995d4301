"""What is done for tasks while a node is served: notifications, and the end of what is stuck."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.app.a2a.delivery import Delivery
from openfang.app.a2a.timing import register_task_timers
from openfang.edges.a2a.notifying import write_notice

if TYPE_CHECKING:
    from openfang.app.a2a.house import NodeHouse
    from openfang.app.parts import Parts


async def watch_over(parts: Parts, house: NodeHouse) -> None:
    """Do what is due until cancelled."""
    delivery = Delivery(
        store=parts.pushes.store,
        find=parts.tasks.find,
        append=parts.broker.append,
        clock=parts.clock,
        targets=parts.pushes.targets,
        write=write_notice,
        sign=house.sign_body,
    )
    await register_task_timers(parts.timers, parts.tasks, delivery)
    await parts.timers.run()
