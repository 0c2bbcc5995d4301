"""A home with extensions, put in as an install does it, and called through the one path."""

from __future__ import annotations

import logging
import os
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import anyio
from tests.node import NODE

from openfang.core.extensions import Capability, ExtensionSpec, Permissions, Runtime
from openfang.core.tools import Trust
from openfang.testing import OpenApp, open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator
    from pathlib import Path

    from openfang.app.extensions.house import Extensions
    from openfang.app.extensions.state import State
    from openfang.core.results import Result
    from openfang.core.tools import Tool

PATIENCE = 60.0
ANYTHING = {"type": "object"}
PATH = f"{os.path.dirname(NODE)}:{os.environ['PATH']}"  # noqa: PTH120 - a search path


class Log(logging.Handler):
    """Keeps what is logged of extensions, and can be waited on."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._news = anyio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
        self._news.set()
        self._news = anyio.Event()

    async def says(self, words: str) -> str:
        """Wait for a line with these words."""
        with anyio.fail_after(PATIENCE):
            while True:
                for line in self.lines:
                    if words in line:
                        return line
                await self._news.wait()


@contextmanager
def logged() -> Generator[Log]:
    """Listen to the log."""
    log, logger = Log(), logging.getLogger("openfang.extensions")
    level = logger.level
    logger.addHandler(log)
    logger.setLevel(logging.INFO)
    try:
        yield log
    finally:
        logger.removeHandler(log)
        logger.setLevel(level)


@dataclass(slots=True)
class Stage:
    """One open home, and the extensions in it."""

    app: OpenApp
    home: Path
    specs: dict[str, ExtensionSpec] = field(default_factory=dict[str, ExtensionSpec])

    @property
    def extensions(self) -> Extensions:
        """Who keeps them."""
        assert self.app.parts.extensions
        return self.app.parts.extensions

    def spec(
        self,
        source: str,
        *capabilities: str | Capability,
        name: str = "tester",
        kind: str = "python",
        permissions: Permissions | None = None,
        runtime: dict[str, Any] | None = None,
        **more: Any,
    ) -> ExtensionSpec:
        """Write an extension's file, and say what it is."""
        file = {"python": "main.py", "node": "main.mjs", "mcp": "server.py"}[kind]
        folder = self.home / "extensions" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(dedent(source))
        facts: dict[str, Any] = {"kind": kind, "entry": (file,), **(runtime or {})}
        more.setdefault("trust", Trust.HIGH)
        return ExtensionSpec(
            id=name,
            folder=folder,
            workspace=self.home / "workspaces" / f"ext-{name}",
            runtime=Runtime(**facts),
            capabilities=tuple(map(_capability, capabilities)),
            permissions=permissions or Permissions(),
            **more,
        )

    async def put(self, source: str, *capabilities: str | Capability, **facts: Any) -> Stage:
        """Write an extension, and put it in."""
        spec = self.spec(source, *capabilities, **facts)
        self.specs[spec.id] = spec
        await self.extensions.put(spec)
        return self

    async def call(self, capability: str, name: str = "tester", /, **arguments: Any) -> Result:
        """Call one, as the administrator."""
        with anyio.fail_after(PATIENCE):
            return await self.app.call(f"ext:{name}:{capability}", **arguments)

    async def text(self, capability: str, name: str = "tester", /, **arguments: Any) -> str:
        """The same, of which the words alone count."""
        return (await self.call(capability, name, **arguments)).text

    def state(self, name: str = "tester") -> State:
        """How it is."""
        return self.extensions.state(name)

    def tool(self, capability: str, name: str = "tester") -> Tool:
        """The tool, as the registry has it."""
        found = self.app.parts.registry.find(f"ext:{name}:{capability}")
        assert found
        return found


def _capability(said: str | Capability) -> Capability:
    if isinstance(said, Capability):
        return said
    return Capability(name=said, input_schema=ANYTHING)


@asynccontextmanager
async def stage(root: Path, *, path: str = PATH, **environ: str) -> AsyncGenerator[Stage]:
    """Open a home; `path` is where programs are found."""
    home, user = root / "openfang", root / "user"
    user.mkdir(exist_ok=True)
    known = {"HOME": str(user), "PATH": path, **environ}
    async with open_test_app(home, environ=known) as app:
        yield Stage(app, home)
