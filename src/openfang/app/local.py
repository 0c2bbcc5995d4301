"""The home as a local command uses it: one caller, in process, no daemon."""

from __future__ import annotations

import os
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from openfang.app.admin import Admin
from openfang.app.home import Home
from openfang.app.identify import credential, identify
from openfang.app.lifespan import open_app
from openfang.app.log import Log
from openfang.config.load import find_home
from openfang.core.calls import Call
from openfang.core.errors import NotFound
from openfang.core.labels import Labels
from openfang.core.trace import Chain, read_chain
from openfang.pipeline.explain import explain
from openfang.pipeline.shape import URI_PREFIX
from openfang.policy.context import Wish, bind

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from openfang.app.build import Parts
    from openfang.core.calls import Caller, Mode
    from openfang.core.decisions import Explanation
    from openfang.core.ids import Kind
    from openfang.core.keys import Question, Spec
    from openfang.core.results import Result
    from openfang.core.tools import Risk, Tool

_DEPTH_LIMIT = 64
_ANCESTOR = re.compile(r"\A[\x21-\x7e]{1,200}\Z")
_MOST_QUESTIONS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a caller may choose for its calls, among what is bound to its key."""

    mode: Mode | None = None
    project: str | None = None
    spec: str | None = None
    task: str | None = None
    blacklist: frozenset[str] = frozenset()
    run: str | None = None
    admin_token: str | None = field(default=None, repr=False)
    patience: float = 0.0

    @property
    def wish(self) -> Wish:
        """The part that the gates read."""
        return Wish(
            mode=self.mode,
            project_id=self.project,
            spec_hash=self.spec,
            task_id=self.task,
            blacklist=self.blacklist,
        )


NO_OPTIONS = Options()


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

    @property
    def log(self) -> Log:
        """The audit log; refuses whoever is no administrator."""
        return Log(self.parts, self.caller)

    def call(self, tool: str, arguments: Mapping[str, Any], options: Options = NO_OPTIONS) -> Call:
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
        return await explain(self.parts.pipeline, call)

    def tools(
        self,
        *,
        kind: Kind | None = None,
        risk: Risk | None = None,
        tag: str | None = None,
        disabled: bool = False,
    ) -> Sequence[Tool]:
        """List what this caller can see, by wire name; `disabled` adds what it cannot use."""
        return self.parts.catalog.list(
            self.caller, kind=kind, risk=risk, tag=tag, disabled=disabled
        )

    def tool(self, name: str) -> Tool:
        """Find a tool by any of its names."""
        return self.parts.catalog.find(self.caller, name)

    def difference(self, tool: Tool) -> str:
        """Say how a tool that is held back differs from what was accepted."""
        held = self.parts.registry.snapshot.held.get(tool.id)
        return held.diff if held else ""

    def whole_result(self, uri: str) -> bytes | None:
        """Read the whole of a result that was cut, as JSON, while it is kept."""
        blob = uri.removeprefix(URI_PREFIX)
        found = self.parts.blobs.get(blob, self.caller.id, self.parts.clock.time_ns())
        return found[0] if found else None

    def questions(self, *, answered: bool = False) -> list[Question]:
        """List what waits for a person, newest first: everybody's for an administrator."""
        store = self.parts.approvals.store
        now = self.parts.clock.time_ns()
        found = store.all(_MOST_QUESTIONS) if answered else store.pending(now)
        return [question for question in found if self._concerns(question)]

    def question(self, question_id: str) -> Question:
        """Find one question; another caller's does not exist."""
        question = self.parts.approvals.store.get(question_id)
        if question is None or not self._concerns(question):
            raise NotFound(f"No question {question_id}.", way_out="openfang approvals list --all")
        return question

    def _concerns(self, question: Question) -> bool:
        return self.caller.admin or question.caller == self.caller.id

    def specs(self) -> list[Spec]:
        """List the frozen specs, oldest first."""
        return self.parts.specs.all()


def incoming_chain(environ: Mapping[str, str]) -> Chain:
    """Continue the chain of whoever started this command, if one of our tools did."""
    ancestors = tuple(filter(_ANCESTOR.match, environ.get("OPENFANG_CHAIN", "").split(",")))
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
