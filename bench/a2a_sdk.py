"""The official SDK's own server for the figures: its request handler, its tasks in SQLite.

It runs in an environment of its own, and takes a port and a folder. Here its libraries are unknown.
"""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

from __future__ import annotations

import os
import sys

os.environ["OTEL_INSTRUMENTATION_A2A_SDK_ENABLED"] = "false"

import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue  # noqa: TC002 - a script, read as it is
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.tasks import DatabaseTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCard
from sqlalchemy import event
from sqlalchemy.ext.asyncio import create_async_engine
from starlette.applications import Starlette


class Echo(AgentExecutor):
    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        task = new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        await updater.add_artifact([new_text_part(context.get_user_input())])
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError


def main() -> None:
    port, folder = int(sys.argv[1]), sys.argv[2]
    engine = create_async_engine(f"sqlite+aiosqlite:///{folder}/tasks.db")

    @event.listens_for(engine.sync_engine, "connect")
    def _wal(connection: object, _: object) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute("PRAGMA synchronous = NORMAL")
        cursor.close()

    handler = DefaultRequestHandler(Echo(), DatabaseTaskStore(engine), AgentCard(name="echo"))
    app = Starlette(routes=create_jsonrpc_routes(handler, "/"))
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="critical", loop="uvloop")


if __name__ == "__main__":
    main()
