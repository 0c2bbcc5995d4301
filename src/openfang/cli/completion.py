"""`openfang completion`."""

from __future__ import annotations

from typing import Literal

from openfang.cli.output import say


def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print the completion script of a shell.

    Args:
        shell: For example `source <(openfang completion bash)`.
    """
    from openfang.cli.app import build_app  # noqa: PLC0415 - which has this command in it

    say(build_app().generate_completion(prog_name="openfang", shell=shell))
