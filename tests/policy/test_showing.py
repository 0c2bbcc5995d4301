"""A question as a form at a client, who may answer one, and what the answers there mean."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from openfang.core.calls import Caller, Role
from openfang.core.errors import PolicyViolation
from openfang.core.keys import Answer, Question, Scope
from openfang.core.results import text_result
from openfang.policy.answerers import check_answerer, wants_four_eyes
from openfang.policy.showing import asked_in, form_of, may_be_shown, read_answer, show

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from openfang.core.results import Result

pytestmark = pytest.mark.requirement("C15.2")

QUESTION = Question(
    id="q1",
    caller="agent:x",
    tool="mcp:demo:deploy",
    arguments_hash="",
    run="",
    rule="spec_not_frozen",
    reason="It is not frozen",
    arguments='{"to":"prod"}',
    state=Answer.PENDING,
    scope=Scope.ONCE,
    asked_at=0,
    expires_at=1,
    root="key:ann",
)


class Asked:
    """A client that answers with what it is given."""

    key = connection = "me"
    level = ""

    def __init__(self, answer: Any = None, *, person: bool = True, **capabilities: Any) -> None:
        self.answer, self.has_person, self.capabilities = answer, person, capabilities
        self.heard: list[tuple[str, Mapping[str, Any], str]] = []

    async def ask(self, method: str, params: Mapping[str, Any], name: str = "") -> Result:
        self.heard.append((method, params, name))
        return text_result("", structured=self.answer)

    def together(self, count: int) -> Callable[[], None]:
        del count
        return lambda: None

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        del method, params


def test_only_who_shows_forms_is_shown_one() -> None:
    assert not may_be_shown(None)
    assert not may_be_shown(Asked())
    assert not may_be_shown(Asked(elicitation={"url": {}}))
    assert may_be_shown(Asked(elicitation={}))


def test_a_form_says_who_asks_for_what_and_can_be_told_from_others() -> None:
    form = form_of(QUESTION)
    assert "may agent:x for key:ann run mcp:demo:deploy?" in form["message"]
    assert '\nWhy: It is not frozen\nArguments: {"to":"prod"}\nQuestion: q1' in form["message"]
    assert form["requestedSchema"]["required"] == ["answer"]
    assert list(form["requestedSchema"]["properties"]) == ["answer"]
    answer = form["requestedSchema"]["properties"]["answer"]
    assert (answer["type"], answer["enum"]) == ("string", ["approve", "deny"])
    assert asked_in(form) == "q1"
    assert asked_in({"_meta": {"openfang/approval": 1}}) == asked_in({}) == ""


def test_who_began_the_chain_is_named_only_if_it_is_another() -> None:
    form = form_of(replace(QUESTION, root="agent:x"))
    assert "may agent:x run mcp:demo:deploy?" in form["message"]


def test_a_form_that_must_be_named_has_the_question_as_a_second_field() -> None:
    schema = form_of(QUESTION, named=True)["requestedSchema"]
    assert schema["required"] == ["answer", "question"]
    named = schema["properties"]["question"]
    assert (named["type"], named["enum"]) == ("string", ["q1"])


@pytest.mark.parametrize(("size", "cut"), [(4000, False), (4001, True)])
def test_long_arguments_are_cut_and_it_is_said_where_they_are(size: int, *, cut: bool) -> None:
    message = form_of(replace(QUESTION, arguments="x" * size))["message"]
    assert message.count("x" * 4000) == 1
    assert ("... (see: openfang approvals show q1)" in message) is cut


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        ({"action": "accept", "content": {"answer": "approve"}}, True),
        ({"action": "accept", "content": {"answer": "deny"}}, False),
        ({"action": "accept", "content": {"answer": "approve", "question": "q1"}}, True),
        ({"action": "accept", "content": {"answer": "approve", "question": "q2"}}, None),
        ({"action": "accept", "content": {"answer": "perhaps"}}, None),
        ({"action": "accept", "content": {}}, None),
        ({"action": "decline"}, False),
        ({"action": "cancel"}, None),
        (None, None),
    ],
)
async def test_an_answer_is_read_as_it_is_meant(answer: Any, *, read: bool | None) -> None:
    client = Asked(answer)
    assert await show(client, QUESTION) is read
    assert client.heard == [("elicitation/create", form_of(QUESTION), "q1")]


async def test_without_a_person_of_its_own_a_client_has_to_name_the_question() -> None:
    client = Asked({"action": "cancel"}, person=False)
    await show(client, QUESTION)
    assert client.heard[0][1] == form_of(QUESTION, named=True)


def test_an_answer_to_another_question_is_none() -> None:
    assert read_answer({"answer": "approve", "question": "q1"}, "q1") is True
    assert read_answer({"answer": "approve", "question": "q2"}, "q1") is None
    assert read_answer({}, "q1") is None


@pytest.mark.parametrize(
    ("by", "role", "four_eyes", "refused"),
    [
        ("agent:x", Role.APPROVER, False, "own_question"),
        ("agent:x", Role.ADMIN, False, ""),
        ("key:ann", Role.USER, False, ""),
        ("agent:x", Role.ADMIN, True, "four_eyes"),
        ("key:ann", Role.ADMIN, True, "four_eyes"),
        ("key:bob", Role.APPROVER, True, ""),
        ("key:bob", Role.APPROVER, False, ""),
    ],
)
def test_who_asked_does_not_answer(by: str, role: Role, refused: str, *, four_eyes: bool) -> None:
    caller = Caller(id=by, role=role)
    if not refused:
        check_answerer(QUESTION, caller, four_eyes=four_eyes)
        return
    with pytest.raises(PolicyViolation) as caught:
        check_answerer(QUESTION, caller, four_eyes=four_eyes)
    assert caught.value.rule == refused


@pytest.mark.parametrize(
    ("tools", "tool", "wanted"),
    [
        (("shell_exec",), "builtin:shell_exec", True),
        (("builtin:shell_*",), "builtin:shell_exec", True),
        (("mcp:demo:*",), "mcp:demo:deploy", True),
        (("deploy",), "mcp:demo:deploy", False),
        ((), "builtin:shell_exec", False),
    ],
)
def test_four_eyes_are_wanted_for_tools_by_id_and_built_ins_by_name(
    tools: tuple[str, ...], tool: str, *, wanted: bool
) -> None:
    assert wants_four_eyes(tools, tool) is wanted
