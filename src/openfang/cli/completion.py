"""`openfang completion`."""

from __future__ import annotations

from typing import Final, Literal

from openfang.cli.output import say

# The script that is generated only says how; this does it, as a file of `fpath` or when sourced.
_ZSH: Final = """\
if [ "$funcstack[1]" = "_openfang" ]; then
  _cyclopts_openfang "$@"
else
  compdef _cyclopts_openfang openfang
fi"""


def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print the completion script of a shell.

    Args:
        shell: For example `source <(openfang completion bash)`; the same with zsh, after
            `compinit`; `openfang completion fish | source`.
    """
    from openfang.cli.app import build_app  # noqa: PLC0415 - which has this command in it

    script = build_app().generate_completion(prog_name="openfang", shell=shell)
    say(f"{script.rstrip()}\n{_ZSH}" if shell == "zsh" else script)
