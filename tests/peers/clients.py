"""What a foreign client is to do with a server, and what it then has to tell.

Each of them is given the same task and tells the same things, so that a test can be run with all.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from tests.node import NODE
from tests.peers.servers import MODULES

if TYPE_CHECKING:
    from collections.abc import Mapping

SECONDS: Final = 60
PROGRAM: Final = Path(__file__).with_name("client.mjs")
Era: TypeAlias = Literal["legacy", "modern", "auto"]


@dataclass(frozen=True, slots=True)
class Web:
    """A server at an address."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Local:
    """A server that the client starts itself."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])


Target: TypeAlias = Web | Local


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Where to connect, in which era, what to ask one after another, and how to answer.

    A form is accepted with `form` in it. What is not in `answers` is not declared as a capability.
    """

    target: Target
    era: Era = "auto"
    requests: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    form: Mapping[str, Any] = field(default_factory=dict[str, Any])
    answers: tuple[str, ...] = ("elicitation", "roots", "sampling")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What came of it: a result or an error for each request, and what the server did meanwhile."""

    revision: str
    server: Mapping[str, Any]
    answers: list[dict[str, Any]]
    asked: list[dict[str, Any]]
    told: list[dict[str, Any]]

    @property
    def results(self) -> list[dict[str, Any]]:
        """Give the results, of which there must be as many as requests."""
        wrong = [answer["error"] for answer in self.answers if "error" in answer]
        assert not wrong, wrong
        return [answer["result"] for answer in self.answers]

    @property
    def questions(self) -> list[str]:
        """Give the methods that the server asked for."""
        return [asked["method"] for asked in self.asked]


def environment() -> dict[str, str]:
    """Leave out what would lead elsewhere, and say where the packages are."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    return {**kept, "NODE_PATH": str(MODULES), "NO_COLOR": "1"}


def typescript(task: Task) -> Seen:
    """Let the TypeScript SDK do it."""
    done = subprocess.run(
        [NODE, PROGRAM, json.dumps(asdict(task))],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Seen(**json.loads(done.stdout))
