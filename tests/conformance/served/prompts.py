"""The prompts of the fixture server, and how their arguments are completed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from tests.conformance.served.contents import CONTEXT, IMAGE, embedded, text
from tests.conformance.served.turn import elicitation, filled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.conformance.served.turn import Turn
    from tests.conformance.served.world import Json, World

Work: TypeAlias = "Callable[[Turn], Awaitable[list[Json]]]"

EXTRA_PROMPT: Final = "test_extra_prompt"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt, and the contents of its messages."""

    description: str
    work: Work
    arguments: tuple[str, ...] = ()

    def listed(self, name: str) -> Json:
        wanted = [
            {"name": one, "description": f"Has to be given: {one}", "required": True}
            for one in self.arguments
        ]
        return {"name": name, "description": self.description, "arguments": wanted}

    async def get(self, turn: Turn) -> Json:
        contents = await self.work(turn)
        messages = [{"role": "user", "content": content} for content in contents]
        return {"description": self.description, "messages": messages}


async def simple(turn: Turn) -> list[Json]:
    del turn
    return [text("This is a simple prompt.")]


async def with_arguments(turn: Turn) -> list[Json]:
    first, second = turn.arguments["arg1"], turn.arguments["arg2"]
    return [text(f"The first is {first!r}, the second {second!r}.")]


async def with_resource(turn: Turn) -> list[Json]:
    resource = embedded(turn.arguments["resourceUri"], "It lies in the prompt.")
    return [resource, text("Read that.")]


async def with_image(turn: Turn) -> list[Json]:
    del turn
    return [IMAGE, text("Look at that.")]


async def asking(turn: Turn) -> list[Json]:
    answers = await turn.ask({"user_context": elicitation("What is it about?", CONTEXT)})
    return [text(f"It is about this: {filled(answers['user_context'])}")]


PROMPTS: Final = {
    "test_simple_prompt": Prompt("Says one thing", simple),
    "test_prompt_with_arguments": Prompt("Repeats", with_arguments, ("arg1", "arg2")),
    "test_prompt_with_embedded_resource": Prompt("Embeds", with_resource, ("resourceUri",)),
    "test_prompt_with_image": Prompt("Shows", with_image),
    "test_input_required_result_prompt": Prompt("Asks before it answers", asking),
}
EXTRA: Final = {EXTRA_PROMPT: Prompt("Comes and goes", simple)}


def prompts(world: World) -> dict[str, Prompt]:
    """Give what is there at the moment."""
    return PROMPTS | {name: prompt for name, prompt in EXTRA.items() if name in world.extra}


def completed(value: str) -> Json:
    """Suggest what may be meant."""
    known = ("test", "testimony", "tested", "par", "paris", "party", "1", "12", "123")
    found = [word for word in known if word.startswith(value)]
    return {"completion": {"values": found, "total": len(found), "hasMore": False}}
