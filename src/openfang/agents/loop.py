"""The loop: ask the model, make the calls it wants, tell it what came of them, until it answers.

Everything that is said is in the journal before anything follows from it.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import anyio

from openfang.agents.history import unanswered
from openfang.core.agents import (
    Ended,
    Ending,
    Heard,
    Made,
    Message,
    Prompt,
    Speaker,
    Spent,
    Usage,
    Wanted,
    Wish,
    Words,
)
from openfang.core.errors import CallFailed, CallRefused, OpenFangError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from openfang.core.agents import Model
    from openfang.core.results import Receipt, Result
    from openfang.core.tools import Tool


class Journal(Protocol):
    """Keeps what was said, durably."""

    async def said(self, message: Message) -> None:
        """Keep one turn."""
        ...

    async def begun(self, wish: Wish) -> None:
        """Keep that a call is about to be made: after a crash it may have had its effect."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a run may use up; 0 and None are no bound."""

    rounds: int = 50
    tokens: int = 0
    cost_usd: float = 0.0
    seconds: float | None = None
    at_once: int = 8


def smaller(one: Budget, other: Budget) -> Budget:
    """The tighter of two budgets, each of its bounds for itself."""
    seconds = [bound for bound in (one.seconds, other.seconds) if bound is not None]
    return Budget(
        rounds=min(one.rounds, other.rounds),
        tokens=int(_tighter(one.tokens, other.tokens)),
        cost_usd=_tighter(one.cost_usd, other.cost_usd),
        seconds=min(seconds, default=None),
        at_once=min(one.at_once, other.at_once),
    )


def _tighter(one: float, other: float) -> float:
    return min(one, other) if one and other else one or other


@dataclass(slots=True, kw_only=True)
class Run:
    """One message and all that follows from it. `history` ends with what is to be answered."""

    model: Model
    system: str
    history: list[Message]
    tools: Callable[[], Sequence[Tool]]
    call: Callable[[Wish], Awaitable[Result]]
    journal: Journal
    told: Callable[[Heard], None]
    budget: Budget = Budget()
    max_tokens: int = 4096
    temperature: float = 0.7
    usage: Usage = field(default=Usage(), init=False)

    async def answer(self) -> Ended:
        """Run to the end. What the model or a tool gets wrong ends up in the answer."""
        text = ""
        with anyio.move_on_after(self.budget.seconds):
            await self._finish_calls()
            for _ in range(self.budget.rounds):
                message = await self._ask()
                text = message.text
                if not message.wishes:
                    return self._ended(text, Ending.ANSWERED)
                if ending := self._spent():
                    await self._leave(message.wishes)
                    return self._ended(text, ending)
                await self._make_all(message.wishes)
            return self._ended(text, Ending.STEPS)
        return self._ended(text, Ending.TIME)

    def _ended(self, text: str, ending: Ending) -> Ended:
        ended = Ended(answer=text or _WORDS[ending], ending=ending, usage=self.usage)
        self.told(ended)
        return ended

    def _spent(self) -> Ending | None:
        budget = self.budget
        if budget.tokens and self.usage.tokens >= budget.tokens:
            return Ending.TOKENS
        if budget.cost_usd and self.usage.cost_usd >= budget.cost_usd:
            return Ending.COST
        return None

    async def _ask(self) -> Message:
        prompt = Prompt(
            system=self.system,
            messages=tuple(self.history),
            tools=self.tools(),
            max_tokens=self.max_tokens,
            temperature=self.temperature,
        )
        words: list[str] = []
        wishes: list[Wish] = []
        async with aclosing(self.model.answer(prompt)) as answer:
            async for said in answer:
                match said:
                    case Words(text):
                        words.append(text)
                        self.told(said)
                    case Wanted(wish):
                        wishes.append(wish)
                        self.told(said)
                    case Spent(usage):
                        self.usage += usage
        message = Message(speaker=Speaker.AGENT, text="".join(words), wishes=tuple(wishes))
        await self._say(message)
        return message

    async def _say(self, message: Message) -> None:
        await self.journal.said(message)
        self.history.append(message)

    async def _finish_calls(self) -> None:
        """Make what an earlier process did not get to; the journal knows what it had begun."""
        wishes = unanswered(self.history)
        if wishes:
            await self._make_all(wishes)

    async def _make_all(self, wishes: Sequence[Wish]) -> None:
        """Make reads side by side, and what has an effect in the order in which it was wanted."""
        known = {name: tool for tool in self.tools() for name in (tool.wire_name, tool.id)}
        for group in _groups(wishes, known):
            for message in await self._side_by_side(group):
                await self._say(message)

    async def _side_by_side(self, wishes: Sequence[Wish]) -> list[Message]:
        made: dict[str, Message] = {}
        failures: list[OpenFangError] = []
        slots = anyio.Semaphore(self.budget.at_once)

        async def make(wish: Wish) -> None:
            async with slots:
                try:
                    made[wish.id] = await self._make(wish)
                except OpenFangError as failure:
                    failures.append(failure)

        async with anyio.create_task_group() as tasks:
            for wish in wishes:
                tasks.start_soon(make, wish)
        if failures:
            raise failures[0]  # it could not be kept that a call begins: the run ends here
        return [made[wish.id] for wish in wishes]

    async def _make(self, wish: Wish) -> Message:
        """Make one call; a refusal is a result that says why."""
        await self.journal.begun(wish)
        receipt: Receipt | None = None
        try:
            result = await self.call(wish)
        except CallFailed as failure:
            outcome, text, receipt = "error", _sentence(failure), failure.receipt
        except CallRefused as refusal:
            outcome, text = "refused", _sentence(refusal)
        else:
            outcome, text, receipt = result.outcome.value, result.text, result.receipt
        self.told(Made(wish=wish, outcome=outcome, text=text, receipt=receipt))
        failed = outcome != "ok"
        return Message(speaker=Speaker.TOOL, text=text, answers=wish.id, is_error=failed)

    async def _leave(self, wishes: Sequence[Wish]) -> None:
        """Answer wishes that will not be made: no call stays without its result."""
        for wish in wishes:
            text = "Error: not made, because the run has used up its budget."
            await self._say(
                Message(speaker=Speaker.TOOL, text=text, answers=wish.id, is_error=True)
            )


def _groups(wishes: Sequence[Wish], known: dict[str, Tool]) -> Iterator[list[Wish]]:
    group: list[Wish] = []
    for wish in wishes:
        tool = known.get(wish.tool)
        if tool is not None and not tool.effects:
            group.append(wish)
            continue
        if group:
            yield group
            group = []
        yield [wish]
    if group:
        yield group


def _sentence(error: OpenFangError) -> str:
    way_out = f" Way out: {error.way_out}." if error.way_out else ""
    return f"Error: {error.message}{way_out}"


_WORDS = {
    Ending.ANSWERED: "",
    Ending.STEPS: "I stopped: the run has no more steps left.",
    Ending.TOKENS: "I stopped: the run has used up its tokens.",
    Ending.COST: "I stopped: the run has used up its money.",
    Ending.TIME: "I stopped: the run has no more time left.",
    Ending.REJECTED: "I do not do that.",
    Ending.FAILED: "I stopped: the model failed.",
}
