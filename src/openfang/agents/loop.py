"""The loop: ask the model, make the calls it wants, tell it what came of them, until it answers.

Everything that is said is in the journal before anything follows from it.
"""

from __future__ import annotations

import logging
import time
from contextlib import aclosing
from dataclasses import field
from typing import TYPE_CHECKING, Protocol, TypeVar

import anyio

from openfang.agents.compact import fitted, size
from openfang.agents.history import unanswered
from openfang.agents.models.failures import ModelFailed, Trouble
from openfang.core.agents import (
    Ended,
    Ending,
    Heard,
    Made,
    Message,
    Prompt,
    Speaker,
    Spent,
    Stop,
    Usage,
    Wanted,
    Wish,
    Words,
)
from openfang.core.calls import UNBOUNDED, Bounds
from openfang.core.errors import CallFailed, CallRefused, OpenFangError, Parked
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence

    from openfang.core.agents import Model, Said
    from openfang.core.budgets import Reached
    from openfang.core.results import Receipt, Result
    from openfang.core.tools import Tool


_log = logging.getLogger("openfang.agents")
_SHOWN = 200
N = TypeVar("N", int, float)


class Journal(Protocol):
    """Keeps what was said, durably."""

    async def said(self, message: Message) -> None:
        """Keep one turn."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a run may use up, and how often its model is asked again; 0 and None are no bound.

    `run_tokens` are those of one run; the others are shared by all runs of the agent in an hour, a
    day and a month.
    """

    rounds: int = 50
    run_tokens: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    daily_usd: float = 0.0
    monthly_usd: float = 0.0
    seconds: float | None = None
    at_once: int = 8
    bounds: Bounds = UNBOUNDED


def smaller(one: Budget, other: Budget) -> Budget:
    """The tighter of two budgets, each of its bounds for itself."""
    return Budget(
        rounds=min(one.rounds, other.rounds),
        run_tokens=int(_tighter(one.run_tokens, other.run_tokens)),
        tokens=int(_tighter(one.tokens, other.tokens)),
        cost_usd=_tighter(one.cost_usd, other.cost_usd),
        daily_usd=_tighter(one.daily_usd, other.daily_usd),
        monthly_usd=_tighter(one.monthly_usd, other.monthly_usd),
        seconds=_least(one.seconds, other.seconds),
        at_once=min(one.at_once, other.at_once),
        bounds=_narrower(one.bounds, other.bounds),
    )


def _narrower(one: Bounds, other: Bounds) -> Bounds:
    return Bounds(
        tool_calls=_least(one.tool_calls, other.tool_calls),
        calls_per_minute=_least(one.calls_per_minute, other.calls_per_minute),
        tool_seconds=_least(one.tool_seconds, other.tool_seconds),
    )


def _least(*bounds: N | None) -> N | None:
    return min((bound for bound in bounds if bound is not None), default=None)


def _tighter(one: float, other: float) -> float:
    return min(one, other) if one and other else one or other


async def _never(used: Usage) -> None:
    """No budget ends a run that has none."""
    del used


@dataclass(slots=True, kw_only=True)
class Run:
    """One message and all that follows from it. `history` ends with what is to be answered.

    `over` finds a budget that is used up; `usage` may begin with what an earlier process had used.
    `window` is what the model can read, in tokens. `theirs` are tools that whoever asks has: a wish
    for one of them ends the run.
    """

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
    over: Callable[[Usage], Awaitable[Reached | None]] = _never
    usage: Usage = field(default=Usage())
    window: int = 0
    theirs: frozenset[str] = frozenset()
    now: Callable[[], int] = time.time_ns
    _reached: Reached | None = field(default=None, init=False)
    _words: list[str] = field(default_factory=list[str], init=False)
    _left: tuple[Wish, ...] = field(default=(), init=False)
    _stop: Stop = field(default=Stop.DONE, init=False)
    _why: str = field(default="", init=False)

    async def answer(self) -> Ended:
        """Run to the end. What the model or a tool gets wrong ends up in the answer."""
        ending = Ending.TIME
        with anyio.move_on_after(self.budget.seconds):
            ending = await self._to_its_end()
        why = self._why if self._reached or ending is Ending.FAILED else ""
        ended = Ended(
            answer=parting("".join(self._words), ending, why),
            ending=ending,
            usage=self.usage,
            wishes=self._left,
            budget=self._reached,
            why=why,
        )
        self.told(ended)
        return ended

    async def _to_its_end(self) -> Ending:
        if ending := await self._over():
            return ending
        await self._finish_calls()
        for left in range(self.budget.rounds, -1, -1):
            if ending := await self._over() or await self._step(left):
                return ending
        return Ending.STEPS

    async def _step(self, left: int) -> Ending | None:
        """Ask once, and make what the model wants; so many more steps are left."""
        message = await self._said()
        if message is None:
            return Ending.FAILED
        if not message.wishes:
            return _STOPS[self._stop]
        if ending := await self._over() or (None if left else Ending.STEPS):
            await self._leave(message.wishes)
            return ending
        self._left = tuple([wish for wish in message.wishes if self._is_theirs(wish)])
        await self._make_all([wish for wish in message.wishes if wish not in self._left])
        return Ending.CALLS if self._left else None

    def _is_theirs(self, wish: Wish) -> bool:
        return wish.tool in self.theirs and not wish.unread

    async def _over(self) -> Ending | None:
        """Look at the budgets: others take from them, too."""
        self._reached = await self.over(self.usage)
        if self._reached is None:
            return None
        self._why = f"I stopped: {self._reached.sentence(self.now())}"
        return self._reached.ending

    async def _said(self) -> Message | None:
        """Let the model speak; None if it does not, for a reason that may be known."""
        try:
            return await self._ask()
        except ModelFailed as failure:
            self._why = f"I stopped: {failure.reason}"
        except _ModelBroke:
            pass
        return None

    async def _ask(self) -> Message:
        prompt = self._prompt(fitted(self.history, self._room()))
        try:
            return await self._answered(prompt)
        except ModelFailed as failure:
            if failure.trouble is not Trouble.WINDOW or self._words:
                raise
        # What it can read is less than we were told, or counted in another way.
        self.window = max(size(prompt.messages) // 2, 1)
        return await self._answered(self._prompt(fitted(self.history, self.window)))

    def _prompt(self, messages: Sequence[Message]) -> Prompt:
        return Prompt(
            system=self.system,
            messages=tuple(messages),
            tools=self.tools(),
            max_tokens=self.max_tokens,
            temperature=self.temperature,
        )

    async def _answered(self, prompt: Prompt) -> Message:
        wishes: list[Wish] = []
        self._words.clear()
        async with aclosing(self._thought(prompt)) as answer:
            async for said in answer:
                match said:
                    case Words(text):
                        self._words.append(text)
                        self.told(said)
                    case Wanted(wish):
                        wishes.append(wish)
                        self.told(said)
                    case Spent(usage, stop):
                        self.usage += usage
                        self._stop = stop
        text = "".join(self._words)
        message = Message(speaker=Speaker.AGENT, text=text, wishes=tuple(wishes))
        await self._say(message)
        return message

    async def _thought(self, prompt: Prompt) -> AsyncGenerator[Said]:
        """Ask the model. What it breaks with ends the run, and is for the log."""
        try:
            async with aclosing(self.model.answer(prompt)) as answer:
                async for said in answer:
                    yield said
        except ModelFailed as failure:
            told = failure.detail or failure.message
            _log.warning("The model %s failed: %s", self.model.name, told)
            raise
        except Exception as error:
            _log.exception("The model %s failed", self.model.name)
            raise _ModelBroke from error

    def _room(self) -> int:
        """What of the window is for the conversation; at least a quarter of it."""
        if not self.window:
            return 0
        system = size([Message(speaker=Speaker.USER, text=self.system)])
        return max(self.window - system - self.max_tokens, self.window // 4)

    async def _say(self, message: Message) -> None:
        """Keep a turn: also if the run is being ended, or it would be kept and not known here."""
        with anyio.CancelScope(shield=True):
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
            await self._side_by_side(group)

    async def _side_by_side(self, wishes: Sequence[Wish]) -> None:
        """Make them at once; each result is kept as it comes."""
        failures: list[OpenFangError] = []
        slots = anyio.Semaphore(self.budget.at_once)

        async def make(wish: Wish) -> None:
            async with slots:
                try:
                    await self._say(await self._make(wish))
                except OpenFangError as failure:
                    failures.append(failure)

        async with anyio.create_task_group() as tasks:
            for wish in wishes:
                tasks.start_soon(make, wish)
        if failures:
            raise failures[0]  # what could not be kept did not happen: the run ends here

    async def _make(self, wish: Wish) -> Message:
        """Make one call; a refusal is a result that says why."""
        if wish.unread:
            return self._not_made(wish)
        receipt: Receipt | None = None
        try:
            result = await self.call(wish)
        except CallFailed as failure:
            outcome, text, receipt = "error", _sentence(failure), failure.receipt
        except Parked as question:
            outcome, text = "parked", _sentence(question)
        except CallRefused as refusal:
            outcome, text = "refused", _sentence(refusal)
        else:
            outcome, text, receipt = result.outcome.value, result.text, result.receipt
        self.told(Made(wish=wish, outcome=outcome, text=text, receipt=receipt))
        failed = outcome != "ok"
        return Message(speaker=Speaker.TOOL, text=text, answers=wish.id, is_error=failed)

    def _not_made(self, wish: Wish) -> Message:
        """Answer a call whose arguments nobody can read; the model may write them again."""
        text = (
            f"Error: not made, because the arguments are no JSON object: {wish.unread[:_SHOWN]!r}. "
            "Way out: the same call with its arguments as a JSON object."
        )
        self.told(Made(wish=wish, outcome="refused", text=text))
        return Message(speaker=Speaker.TOOL, text=text, answers=wish.id, is_error=True)

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
        if tool is not None and tool.only_reads:
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


class _ModelBroke(Exception):  # noqa: N818 - it reads as what it is
    """The model broke; why stands in the log."""


def parting(said: str, ending: Ending, why: str = "") -> str:
    """The last words of a run: what it had said, and why there is no more of it."""
    return "\n\n".join(filter(None, (said, why or _WORDS[ending])))


_WORDS = {
    Ending.ANSWERED: "",
    Ending.STEPS: "I stopped: the run has no more steps left.",
    Ending.TOKENS: "I stopped: no tokens are left.",
    Ending.COST: "I stopped: no money is left.",
    Ending.TIME: "I stopped: the run has no more time left.",
    Ending.LENGTH: "I stopped: the answer is longer than max_tokens allows.",
    Ending.REJECTED: "I do not do that.",
    Ending.CALLS: "",
    Ending.FAILED: "I stopped: the model failed.",
}
_STOPS = {
    Stop.DONE: Ending.ANSWERED,
    Stop.LENGTH: Ending.LENGTH,
    Stop.REFUSED: Ending.REJECTED,
}
