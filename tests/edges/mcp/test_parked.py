"""A call that waits for its client: the question is a result, the answer a retry with its state."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.edges.mcp.shelf import Shelf

from openfang.core.calls import Caller, Mode
from openfang.core.results import Result, text_result
from openfang.edges.mcp.handler import Handler
from openfang.edges.mcp.modern import modern_context
from openfang.edges.mcp.parked import MOST_OF_ONE
from openfang.edges.mcp.ports import Place
from openfang.edges.mcp.state import State, digest, seal, unseal
from openfang.protocols.mcp.errors import RpcError
from openfang.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.session import Options

pytestmark = pytest.mark.requirement("C3.10", "C4.6", "C7.7")

META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}
FORM: dict[str, Any] = {
    "message": "Which?",
    "requestedSchema": {"type": "object", "properties": {}},
}
ADA = {"action": "accept", "content": {"name": "Ada"}}


@dataclass
class Nowhere:
    """The way back to a client that only reads its answer."""

    open: bool = False
    told: list[str] = field(default_factory=list[str])

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        del params
        self.told.append(method)

    async def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        raise AssertionError(method, params)


async def greet(arguments: Mapping[str, Any], options: Options) -> Result:
    """Ask for a name; for another one as often as wished."""
    assert options.client
    names: list[str] = []
    for number in range(arguments.get("times", 1)):
        answer = await options.client.ask("elicitation/create", FORM, f"name-{number}")
        names.append(str(answer.structured or answer.text))
    return text_result(" ".join(names))


async def both(arguments: Mapping[str, Any], options: Options) -> Result:
    """Ask two things at once."""
    del arguments
    assert options.client
    options.client.together(2)
    asked = (options.client.ask("elicitation/create", FORM, name) for name in ("one", "two"))
    return text_result(str([answer.structured for answer in await asyncio.gather(*asked)]))


async def mode(arguments: Mapping[str, Any], options: Options) -> Result:
    del arguments
    return text_result(f"{options.mode} {options.project} {options.admin_token}")


@dataclass
class Desk:
    """A handler, and a caller before it."""

    clock: ManualClock = field(default_factory=ManualClock)
    shelf: Shelf = field(
        default_factory=lambda: Shelf(functions={"greet": greet, "both": both, "mode": mode})
    )

    def __post_init__(self) -> None:
        self.handler = Handler(secret=b"secret", clock=self.clock)

    async def call(
        self,
        name: str = "greet",
        *,
        shelf: Shelf | None = None,
        run: str | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        arguments = more.pop("arguments", {})
        meta = {**META, **more.pop("meta", {})}
        params: dict[str, Any] = {"name": name, "arguments": arguments, "_meta": meta, **more}
        context = modern_context(params, shelf or self.shelf, Nowhere(), run=run)
        with anyio.fail_after(30):
            return await self.handler.handle("tools/call", params, context)

    async def again(self, asked: Mapping[str, Any], responses: Any, **more: Any) -> dict[str, Any]:
        state = asked["requestState"]
        return await self.call(requestState=state, inputResponses=responses, **more)

    @property
    def waiting(self) -> int:
        return len(self.handler._parked._waiting)


def text(result: Mapping[str, Any]) -> str:
    return result["content"][0]["text"]


async def test_a_question_is_a_result_and_its_answer_ends_the_call() -> None:
    desk = Desk()
    asked = await desk.call()
    assert asked["resultType"] == "input_required"
    assert asked["inputRequests"] == {"name-0": {"method": "elicitation/create", "params": FORM}}
    assert "Ada" in text(await desk.again(asked, {"name-0": ADA}))
    assert desk.waiting == 0


async def test_one_question_follows_another_in_the_same_call() -> None:
    desk = Desk()
    first = await desk.call(arguments={"times": 2})
    second = await desk.again(first, {"name-0": ADA}, arguments={"times": 2})
    assert list(second["inputRequests"]) == ["name-1"]
    done = await desk.again(second, {"name-1": ADA}, arguments={"times": 2})
    assert text(done).count("Ada") == 2


async def test_questions_that_belong_together_are_put_at_once_and_each_once() -> None:
    desk = Desk()
    asked = await desk.call("both")
    assert list(asked["inputRequests"]) == ["one", "two"]
    rest = await desk.again(asked, {"one": ADA, "more": ADA}, name="both")
    assert list(rest["inputRequests"]) == ["two"]
    assert text(await desk.again(rest, {"two": ADA}, name="both")).count("Ada") == 2


async def test_an_answer_may_come_with_the_question_still_unasked() -> None:
    done = await Desk().call(inputResponses={"name-0": ADA, "else": ADA})
    assert done["resultType"] == "complete"


async def test_who_answers_nothing_is_asked_again() -> None:
    desk = Desk()
    asked = await desk.call()
    again = await desk.again(asked, {"name-0": "not an object"})
    assert again["inputRequests"] == asked["inputRequests"]


async def test_a_state_is_good_for_this_request_in_this_place_alone() -> None:
    desk = Desk()
    asked = await desk.call()
    other = replace(desk.shelf, caller=Caller(id="key:other"))
    elsewhere = replace(desk.shelf, place=Place(toolset="other"))
    for wrong in ({"shelf": other}, {"shelf": elsewhere}, {"arguments": {"times": 2}}):
        with pytest.raises(RpcError, match="none of ours"):
            await desk.again(asked, {"name-0": ADA}, **wrong)
    with pytest.raises(RpcError, match="none of ours"):
        await desk.again({"requestState": asked["requestState"] + "x"}, {"name-0": ADA})
    assert "Ada" in text(await desk.again(asked, {"name-0": ADA}))


async def test_a_state_that_was_used_or_is_too_old_is_over() -> None:
    desk = Desk()
    asked = await desk.call()
    await desk.again(asked, {"name-0": ADA})
    with pytest.raises(RpcError, match="is over"):
        await desk.again(asked, {"name-0": ADA})
    late = await desk.call()
    desk.clock.advance(601)
    with pytest.raises(RpcError, match="is over"):
        await desk.again(late, {"name-0": ADA})


async def test_who_hangs_up_in_a_retry_leaves_nothing_behind() -> None:
    entered = anyio.Event()

    async def stays(arguments: Mapping[str, Any], options: Options) -> Result:
        await greet(arguments, options)
        entered.set()
        await anyio.sleep_forever()
        raise AssertionError

    desk = Desk()
    desk.shelf = Shelf(functions={"greet": stays})
    for _ in range(MOST_OF_ONE + 5):
        asked = await desk.call()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(desk.again, asked, {"name-0": ADA})
            await entered.wait()
            tasks.cancel_scope.cancel()
        entered = anyio.Event()
        with pytest.raises(RpcError, match="is over"):
            await desk.again(asked, {"name-0": ADA})
    assert desk.waiting == 0


async def test_too_many_calls_of_one_caller_do_not_wait() -> None:
    desk = Desk()
    for _ in range(MOST_OF_ONE):
        assert "requestState" in await desk.call()
    assert "Too many" in str(await desk.call())
    other = replace(desk.shelf, caller=Caller(id="key:other"))
    assert "requestState" in await desk.call(shelf=other)
    desk.handler.close()
    assert desk.waiting == 0


async def test_calls_end_with_the_connection_that_began_them() -> None:
    desk = Desk()
    await desk.call(run="one")
    kept = await desk.call(run="two")
    desk.handler.left("one")
    assert desk.waiting == 1
    assert "Ada" in text(await desk.again(kept, {"name-0": ADA}))


async def test_a_request_may_choose_what_is_bound_to_its_caller() -> None:
    chosen = {"mode": "planning", "project_id": "p"}
    meta = {"openfang/context": chosen, "openfang/adminToken": "t"}
    assert text(await Desk().call("mode", meta=meta)) == f"{Mode.PLANNING} p t"
    for wrong in ({"mode": "fast"}, {"else": 1}, 7):
        with pytest.raises(RpcError, match="openfang/context"):
            await Desk().call("mode", meta={"openfang/context": wrong})


@given(
    st.text(max_size=30),
    st.integers(0, 2**62),
    st.text(max_size=30),
    st.binary(max_size=40),
    st.integers(0, 200),
)
def test_a_state_that_was_changed_is_nobodys(
    call: str, until: int, node: str, subject: bytes, place: int
) -> None:
    named = State(call.replace(".", "-"), until, node)
    state = seal(b"key", named, subject)
    assert unseal(b"key", state, subject) == named
    assert unseal(b"other", state, subject) is None
    assert unseal(b"key", state, subject + b"x") is None
    at = place % len(state)
    changed = state[:at] + ("A" if state[at] != "A" else "B") + state[at + 1 :]
    assert unseal(b"key", changed, subject) is None


def test_a_digest_tells_callers_places_methods_and_arguments_apart() -> None:
    same = digest("a", "p", "m", {"x": 1, "_meta": {"y": 2}, "requestState": "s"})
    assert same == digest("a", "p", "m", {"x": 1})
    others = [("b", "p", "m"), ("a", "q", "m"), ("a", "p", "n")]
    assert all(digest(*other, {"x": 1}) != same for other in others)
    assert digest("a", "p", "m", {"x": 2}) != same
