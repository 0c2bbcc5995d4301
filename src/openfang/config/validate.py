"""From the data of a file to a model, or to every problem that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from openfang.config.fields import Folders, Section
from openfang.config.problems import Problem, explain, spell
from openfang.config.schema import shape_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from openfang.config.lines import Key
    from openfang.config.models import Place

_Model = TypeVar("_Model", bound=Section)


def validated(
    model: type[_Model],
    data: Mapping[str, Any],
    place: Callable[[Key], Place],
    folders: Folders,
    naming: str = "name",
) -> _Model | list[Problem]:
    """Validate, or say of each error where it stands; `naming` is the key that names an entry."""
    try:
        return model.model_validate(data, context=folders)
    except ValidationError as error:
        problems: list[Problem] = []
        for detail in error.errors(include_url=False, include_input=False):
            key, message = explain(detail, data, shape_of(model))
            problems.append(Problem(place(key), spell(key, data, naming), message))
        return problems
