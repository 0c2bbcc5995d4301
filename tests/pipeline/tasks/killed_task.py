"""A process with tasks under way, for tests that kill it: one works, one waits for its caller.

Prints the ids of its tasks as JSON when both are on disk, and waits to be killed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from tests.pipeline.tasks.scene import Held, answers, scene

from openfang.core.clients import ELICITATION

if TYPE_CHECKING:
    from openfang.core.clients import Client
    from openfang.core.progress import Listener
    from openfang.core.results import Result


async def asks(client: Client, listener: Listener) -> Result:
    del listener
    return await client.ask(ELICITATION, {"message": "which?"})


async def main(folder: Path) -> None:
    async with scene(folder) as node:
        ended = await node.begin(answers)
        await node.service.settled(ended.id)
        tasks = [await node.begin(Held()), await node.begin(Held()), await node.begin(asks)]
        await node.service.settled(tasks[-1].id)
        sys.stdout.write(json.dumps([task.id for task in (*tasks, ended)]) + "\n")
        sys.stdout.flush()
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))
