"""`image_analyze`: what a picture of the caller's workspace is, and what a model sees in it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Final, TypeAlias

from anyio import to_thread

from openfang.core.calls import Call
from openfang.core.labels import Labels
from openfang.core.results import Result, text_result
from openfang.core.tools import Risk
from openfang.core.values import dataclass
from openfang.sources.builtin.external import marked
from openfang.sources.builtin.source import Builtin, builtin_tool, object_schema
from openfang.sources.builtin.workspaces import PATH, Workspaces

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from openfang.core.calls import Admitted
    from openfang.sources.builtin.pictures import Picture

# Asks the model of the agent that calls about a picture: the call, the picture, its media type and
# the question. None where no model with vision is.
See: TypeAlias = Callable[[Call, bytes, str, str], Awaitable[str | None]]

_SEEN: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_UNSEEN: Final = "No model with vision is at hand: the prompt was not answered."
_UNKNOWN: Final = "Models see PNG, JPEG, GIF and WebP: the prompt was not answered."
_ANALYZE = builtin_tool(
    "image_analyze",
    "Look at an image of your workspace: format, size and dimensions, and the answer to a prompt "
    "if your model has vision.",
    object_schema(
        ["path"],
        path=PATH,
        prompt={
            "type": "string",
            "minLength": 1,
            "maxLength": 4096,
            "description": "What you want to know of the image.",
        },
    ),
    risk=Risk.LOW,
    tags=frozenset({"fs.read"}),
    labels=Labels.LOCAL_FILE,
    idempotent=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageLimits:
    """How large an image may be."""

    max_bytes: int = 10_000_000
    max_pixels: int = 50_000_000


def image_tools(
    workspace: Callable[[str], Path], limits: ImageLimits, see: See
) -> Sequence[Builtin]:
    """The family of images; `workspace` finds the folder of a caller's space."""
    spaces = Workspaces(workspace)
    return [Builtin(_ANALYZE, _Images(spaces, limits, see).analyze, spaces.grant)]


@dataclass(frozen=True, slots=True)
class _Images:
    spaces: Workspaces
    limits: ImageLimits
    see: See

    async def analyze(self, admitted: Admitted) -> Result:
        data, picture = await to_thread.run_sync(self._looked_at, admitted)
        prompt = admitted.call.arguments.get("prompt")
        if not prompt:
            return text_result(picture.line, structured=asdict(picture))
        if picture.media_type not in _SEEN:
            return _unanswered(picture, _UNKNOWN)
        answer = await self.see(admitted.call, data, picture.media_type, prompt)
        return _unanswered(picture, _UNSEEN) if answer is None else _answered(picture, answer)

    def _looked_at(self, admitted: Admitted) -> tuple[bytes, Picture]:
        from openfang.sources.builtin.pictures import look_at  # noqa: PLC0415 - Pillow takes 0.1 s

        path = admitted.call.arguments["path"]
        with self.spaces.open(admitted.call.caller) as folder:
            data = folder.read(path, limit=self.limits.max_bytes, setting="tools.image.max_bytes")
        return data, look_at(path, data, self.limits.max_pixels)


def _unanswered(picture: Picture, why: str) -> Result:
    fields = {**asdict(picture), "answer": None}
    return text_result(f"{picture.line}\n{why}", structured=fields)


def _answered(picture: Picture, answer: str) -> Result:
    """Hand on what the model said: who drew the picture could have told it what to say."""
    fields = {**asdict(picture), "answer": answer}
    told = marked(answer, "what a model sees in the image")
    text = f"{picture.line}\n{told}"
    return text_result(text, structured=fields, labels=Labels.UNTRUSTED_AGENT)
