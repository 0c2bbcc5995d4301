"""Who may answer a question: never a model, and where four eyes are wanted never who asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from openfang.core.calls import Role
from openfang.core.errors import PolicyViolation
from openfang.core.ids import Kind
from openfang.policy.globs import matches

if TYPE_CHECKING:
    from openfang.core.calls import Caller
    from openfang.core.keys import Question

_BUILTIN: Final = f"{Kind.BUILTIN.value}:"
_ANOTHER: Final = "let another approver answer it"


def wants_four_eyes(tools: tuple[str, ...], tool: str) -> bool:
    """Whether whoever asks for this tool may not be the one who allows it."""
    return matches(tools, tool) or matches(tools, tool.removeprefix(_BUILTIN))


def check_answerer(question: Question, by: Caller, *, four_eyes: bool) -> None:
    """Refuse who may not say yes: who asked; without four eyes an administrator may.

    An administrator may be the only person there is.
    """
    if four_eyes:
        check_four_eyes(question, by.id)
    elif by.id == question.caller and by.role is not Role.ADMIN:
        raise PolicyViolation(
            f"{by.id} asked {question.id} itself.",
            rule="own_question",
            way_out=f"{_ANOTHER}, or an administrator",
        )


def check_four_eyes(question: Question, by: str) -> None:
    """Refuse whoever made the call, or began the chain that it is part of."""
    if by in question.askers:
        raise PolicyViolation(
            f"{by} asked {question.id}, and {question.tool} needs four eyes.",
            rule="four_eyes",
            way_out=_ANOTHER,
        )
