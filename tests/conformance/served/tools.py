"""The tools of the fixture server: each does what the suite's scenario of it looks for."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio
import jsonschema_rs
from mcp.server.subscriptions import PromptsListChanged, ResourceUpdated, ToolsListChanged
from tests.conformance.served.contents import (
    AUDIO,
    COLOR,
    DEFAULTS,
    ENUMS,
    IMAGE,
    NAME,
    USER,
    YES,
    embedded,
    failed,
    said,
    text,
)
from tests.conformance.served.prompts import EXTRA_PROMPT
from tests.conformance.served.resources import WATCHED
from tests.conformance.served.turn import elicitation, filled, form, roots, sampling, written

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.conformance.served.turn import Turn
    from tests.conformance.served.world import Json, World

Work: TypeAlias = "Callable[[Turn], Awaitable[Json]]"

EXTRA_TOOL: Final = "test_extra_tool"
# How long a tool takes between two things that it tells.
STEP: Final = 0.02


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool, and what it does."""

    description: str
    work: Work
    schema: Json = field(default_factory=dict[str, Any])
    changes: bool = False

    @property
    def input_schema(self) -> Json:
        return {"type": "object", "properties": {}, **self.schema}

    def listed(self, name: str) -> Json:
        return {
            "name": name,
            "description": self.description,
            "inputSchema": self.input_schema,
            "annotations": {"readOnlyHint": not self.changes, "openWorldHint": False},
        }

    async def call(self, turn: Turn) -> Json:
        """Do it; wrong arguments are the model's mistake, and it is told."""
        wrong = next(jsonschema_rs.iter_errors(self.input_schema, turn.arguments), None)
        return failed(f"Wrong arguments: {wrong.message}") if wrong else await self.work(turn)


# Answering and telling


def answering(*parts: Json) -> Work:
    """Always answer the same."""

    async def work(turn: Turn) -> Json:
        del turn
        return said(*parts)

    return work


async def fail(turn: Turn) -> Json:
    del turn
    return failed("This tool always fails")


async def log_three_things(turn: Turn) -> Json:
    for what in ("begins", "goes on", "is done"):
        await turn.log("info", f"The tool {what}")
        await anyio.sleep(STEP)
    return said(text("Three things were logged"))


async def log_at_two_levels(turn: Turn) -> Json:
    await turn.log("debug", "a detail")
    await turn.log("error", "a mistake")
    return said(text("What was wanted was logged"))


async def progress(turn: Turn) -> Json:
    for step in (0, 50, 100):
        await turn.tell(step, 100)
        await anyio.sleep(STEP)
    return said(text("It went from 0 to 100"))


async def reconnect(turn: Turn) -> Json:
    """Close the stream of the call; the client comes back for the answer."""
    if turn.ctx.close_sse_stream:
        await anyio.sleep(STEP)  # a stream that has not begun cannot be taken up again
        await turn.ctx.close_sse_stream()
    return said(text("The answer came after the break"))


async def repeat(turn: Turn) -> Json:
    return said(text(json.dumps(turn.arguments, sort_keys=True)))


# Asking


async def sample(turn: Turn) -> Json:
    answers = await turn.ask({"reply": sampling(turn.arguments["prompt"])})
    return said(text(f"LLM response: {written(answers['reply'])}"))


async def elicit(turn: Turn) -> Json:
    answers = await turn.ask({"user": elicitation(turn.arguments["message"], USER)})
    return said(text(f"User response: {filled(answers['user'])}"))


def eliciting(message: str, fields: Json) -> Work:
    """Ask for a form of which nothing has to be filled in."""

    async def work(turn: Turn) -> Json:
        answers = await turn.ask({"form": elicitation(message, fields, required=False)})
        return said(text(f"Elicitation completed: {filled(answers['form'])}"))

    return work


async def need_sampling(turn: Turn) -> Json:
    answers = await turn.ask({"reply": sampling("Are you there?")})
    return said(text(written(answers["reply"])))


async def tell_then_elicit(turn: Turn) -> Json:
    await turn.tell(1, 2)
    await turn.log("info", "There is a question")
    answers = await turn.ask({"go_on": elicitation("Shall it go on?", YES)})
    return said(text(filled(answers["go_on"])))


async def greet(turn: Turn) -> Json:
    answers = await turn.ask({"user_name": elicitation("Who are you?", NAME)})
    return said(text(f"Hello, {form(answers['user_name']).get('name', 'stranger')}!"))


async def ask_a_model(turn: Turn) -> Json:
    answers = await turn.ask({"capital_question": sampling("Name the capital of France.")})
    return said(text(written(answers["capital_question"])))


async def ask_for_roots(turn: Turn) -> Json:
    answers = await turn.ask({"client_roots": roots()})
    return said(text(" ".join(root["uri"] for root in answers["client_roots"]["roots"])))


async def confirm(turn: Turn) -> Json:
    answers = await turn.ask({"confirm": elicitation("Is it so?", YES)}, sealed=True)
    return said(text(f"state-ok: {filled(answers['confirm'])}"))


async def ask_three_things(turn: Turn) -> Json:
    questions = {
        "user_name": elicitation("Who are you?", NAME),
        "greeting": sampling("Greet somebody.", 50),
        "client_roots": roots(),
    }
    answers = await turn.ask(questions, sealed=True)
    folders = [root["uri"] for root in answers["client_roots"]["roots"]]
    words = (written(answers["greeting"]), filled(answers["user_name"]), *folders)
    return said(text(" ".join(words)))


async def ask_twice(turn: Turn) -> Json:
    first = await turn.ask({"step1": elicitation("Who are you?", NAME)}, sealed=True)
    second = await turn.ask({"step2": elicitation("Which colour?", COLOR)}, sealed=True)
    return said(text(f"{filled(first['step1'])} {filled(second['step2'])}"))


async def ask_what_is_possible(turn: Turn) -> Json:
    questions = {"name": elicitation("Who are you?", NAME), "greeting": sampling("Greet somebody.")}
    possible = {key: question for key, question in questions.items() if turn.can(question)}
    answers = await turn.ask(possible)
    return said(text(f"Answered: {', '.join(sorted(answers)) or 'nothing'}"))


# Changing


async def change_tools(turn: Turn) -> Json:
    told = turn.world.toggle(EXTRA_TOOL)
    await turn.world.announce(ToolsListChanged())
    return said(text(told))


async def change_prompts(turn: Turn) -> Json:
    told = turn.world.toggle(EXTRA_PROMPT)
    await turn.world.announce(PromptsListChanged())
    return said(text(told))


async def change_resource(turn: Turn) -> Json:
    turn.world.edition += 1
    await turn.world.announce(ResourceUpdated(WATCHED))
    return said(text(f"It is the edition number {turn.world.edition}"))


# The list


def takes(name: str, **more: str) -> Json:
    """Describe one string that has to be there."""
    return {"properties": {name: {"type": "string", **more}}, "required": [name]}


_LETTER: Final[Json] = {"required": ["letter"]}
_PHONE: Final[Json] = {"required": ["phone"]}
CONTACT: Final[Json] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$defs": {
        "address": {
            "$anchor": "place",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "by": {"type": "string", "enum": ["letter", "phone"]},
        "letter": {"$ref": "#place"},
        "phone": {"type": "string"},
    },
    "allOf": [{"anyOf": [_LETTER, _PHONE]}],
    "if": {"properties": {"by": {"const": "letter"}}, "required": ["by"]},
    "then": _LETTER,
    "else": _PHONE,
    "additionalProperties": False,
}
_EMBEDDED: Final = embedded("test://embedded-resource", "It lies in the answer.")
_MIXED: Final = embedded("test://mixed-content-resource", '{"n":1}', "application/json")
_ASKS: Final = "test_input_required_result"

TOOLS: Final = {
    "test_simple_text": Tool("Answers with text", answering(text("A simple text."))),
    "test_image_content": Tool("Answers with a picture", answering(IMAGE)),
    "test_audio_content": Tool("Answers with a sound", answering(AUDIO)),
    "test_embedded_resource": Tool("Answers with a resource", answering(_EMBEDDED)),
    "test_multiple_content_types": Tool("Mixes", answering(text("A mixture:"), IMAGE, _MIXED)),
    "test_tool_with_logging": Tool("Logs three things", log_three_things),
    "test_logging_tool": Tool("Logs at two levels", log_at_two_levels),
    "test_tool_with_progress": Tool("Tells how far it is", progress),
    "test_error_handling": Tool("Fails", fail),
    "test_reconnection": Tool("Breaks its stream off", reconnect),
    "json_schema_2020_12_tool": Tool("Takes what only a rich schema tells", repeat, CONTACT),
    "test_header": Tool("Reads a header", repeat, takes("region", **{"x-mcp-header": "Region"})),
    "test_sampling": Tool("Asks a model", sample, takes("prompt")),
    "test_elicitation": Tool("Asks a person", elicit, takes("message")),
    "test_elicitation_sep1034_defaults": Tool("Suggests", eliciting("Is it right?", DEFAULTS)),
    "test_elicitation_sep1330_enums": Tool("Lets choose", eliciting("Which of them?", ENUMS)),
    "test_missing_capability": Tool("Cannot do without a model", need_sampling),
    "test_streaming_elicitation": Tool("Tells something, then asks", tell_then_elicit),
    f"{_ASKS}_elicitation": Tool("Asks for a name", greet),
    f"{_ASKS}_sampling": Tool("Asks for a capital", ask_a_model),
    f"{_ASKS}_list_roots": Tool("Asks for folders", ask_for_roots),
    f"{_ASKS}_request_state": Tool("Asks with a state", confirm),
    f"{_ASKS}_tampered_state": Tool("Trusts no state but its own", confirm),
    f"{_ASKS}_multiple_inputs": Tool("Asks three things", ask_three_things),
    f"{_ASKS}_multi_round": Tool("Asks twice", ask_twice),
    f"{_ASKS}_capabilities": Tool("Asks what can be answered", ask_what_is_possible),
    "test_trigger_tool_change": Tool("Changes tools", change_tools, changes=True),
    "test_trigger_prompt_change": Tool("Changes prompts", change_prompts, changes=True),
    "test_trigger_resource_change": Tool("Changes a resource", change_resource, changes=True),
}
EXTRA: Final = {EXTRA_TOOL: Tool("Comes and goes", answering(text("Here for now.")))}


def tools(world: World) -> dict[str, Tool]:
    """Give what is there at the moment."""
    return TOOLS | {name: tool for name, tool in EXTRA.items() if name in world.extra}
