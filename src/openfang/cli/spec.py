"""`openfang spec freeze|list`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from openfang.cli.errors import Usage
from openfang.cli.options import STDIN, File, Json, plain_name, read_input
from openfang.cli.output import entry, note, print_json, say
from openfang.cli.session import on_home
from openfang.core.wire import moment, spec_body

if TYPE_CHECKING:
    pass


def freeze(
    file: File,
    /,
    *,
    project: Annotated[str, Parameter(help="The project it belongs to.")] = "default",
    name: Annotated[str | None, Parameter(help="What to call it; else the file's name.")] = None,
    as_json: Json = False,
) -> None:
    """Freeze a plan and print its hash: calls that name it may use risky tools.

    `openfang spec freeze plan.md`, then `openfang tools call shell_exec --spec HASH --args ...`

    Args:
        file: The plan; `-` is standard input.
    """
    content = read_input(file)
    if not content.strip():
        raise Usage(f"{file} is empty: there is no plan in it.", way_out="write down what is meant")
    called = name or ("stdin" if file == STDIN else Path(file).name)
    plain_name(project, "project")
    spec = on_home(lambda session: session.freeze_spec(called, content, project))
    if as_json:
        print_json(spec_body(spec))
        return
    say(spec.hash)
    note(f"{spec.name} is frozen for the project {spec.project}")
    note(f"use it: openfang tools call NAME --spec {spec.hash}")


def list_specs(*, as_json: Json = False) -> None:
    """List the frozen plans."""
    found = on_home(lambda session: session.specs())
    if as_json:
        print_json([spec_body(spec) for spec in found])
    elif not found:
        note("No spec is frozen. Freeze one: openfang spec freeze FILE")
    else:
        for spec in found:
            frozen = f"frozen by {spec.frozen_by} at {moment(spec.frozen_at)}"
            entry(spec.hash, f"{spec.name}, project {spec.project}, {frozen}")
