"""Options that several commands share, and how their text is read."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path
from typing import Annotated, Any, cast

import orjson
from cyclopts import Parameter

from openfang.cli.errors import Usage
from openfang.core.calls import Mode
from openfang.core.integers import long_integer
from openfang.core.session import Options
from openfang.core.tools import TAGS
from openfang.core.values import dataclass

MAX_INPUT = 10_000_000
STDIN = "-"
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_DURATION = re.compile(r"\A([0-9]{1,9})([smhd])\Z")
_LONGEST_DAYS = 3650
_NAME = re.compile(r"\A[a-z0-9][a-z0-9._-]{0,63}\Z")

Json = Annotated[bool, Parameter(name="--json", help="Print JSON.")]
File = Annotated[str, Parameter(allow_leading_hyphen=True)]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The arguments of a call."""

    args: Annotated[str | None, Parameter(help="The arguments, as a JSON object.")] = None
    args_file: Annotated[
        str | None,
        Parameter(
            help="A file with the arguments; `-` is standard input.", allow_leading_hyphen=True
        ),
    ] = None

    def read(self) -> dict[str, Any]:
        """Read the arguments, which must be one JSON object."""
        if self.args is not None and self.args_file is not None:
            raise Usage("Both --args and --args-file are given.", way_out="give one of them")
        if self.args_file is not None:
            return read_object(read_input(self.args_file), "--args-file")
        return read_object((self.args or "{}").encode(), "--args")


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a call may choose among what is bound to its key."""

    mode: Annotated[Mode | None, Parameter(help="In which mode the call is made.")] = None
    project: Annotated[str | None, Parameter(help="For which project.")] = None
    spec: Annotated[str | None, Parameter(help="By which frozen spec: its hash.")] = None
    task: Annotated[str | None, Parameter(help="As part of which task.")] = None
    blacklist: Annotated[
        tuple[str, ...], Parameter(help="A side effect that is refused; can be repeated.")
    ] = ()
    admin_token_file: Annotated[
        str | None, Parameter(help="A file with an admin token, for gate 6.")
    ] = None
    run: Annotated[
        str | None,
        Parameter(help="The run that the call belongs to: its labels follow it."),
    ] = None

    def options(self, wait: float = 0.0) -> Options:
        """Say the same to the application."""
        if not (0 <= wait < math.inf):
            raise Usage(f"--wait is {wait:g}, expected seconds.", way_out="--wait 60")
        return Options(
            mode=self.mode,
            project=self.project,
            spec=self.spec,
            task=self.task,
            blacklist=tags(self.blacklist),
            run=self.run,
            admin_token=_token(self.admin_token_file),
            patience=wait,
        )


NO_ARGUMENTS = Arguments()
NO_CHOICE = Choice()


def read_object(text: bytes, where: str) -> dict[str, Any]:
    """Read one JSON object, or say where it stops being one."""
    try:
        value: object = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise Usage(
            f"{where} is not valid JSON: {error.msg} ({place}).",
            way_out="""an object such as '{"path": "notes.txt"}'""",
        ) from None
    _refuse_long_integers(text, where)
    if not isinstance(value, dict):
        kind = "null" if value is None else type(value).__name__
        raise Usage(
            f"{where} must be a JSON object, got {kind}.",
            way_out="""an object such as '{"path": "notes.txt"}'""",
        )
    return cast("dict[str, Any]", value)


def _refuse_long_integers(text: bytes, where: str) -> None:
    """Refuse an integer that would be rounded; `text` is valid JSON."""
    if digits := long_integer(text):
        raise Usage(
            f"{where} has the integer {digits}, which needs more than 64 bits.",
            way_out="pass it as a string, if the tool takes one",
        )


def read_input(file: str) -> bytes:
    """Read a file or standard input, up to what any message may have."""
    try:
        if file == STDIN:
            content = sys.stdin.buffer.read(MAX_INPUT + 1)
        else:
            with Path(file).open("rb") as opened:
                content = opened.read(MAX_INPUT + 1)
    except OSError as error:
        raise Usage(f"{file} cannot be read: {error.strerror}.", way_out="name a file") from None
    if len(content) > MAX_INPUT:
        raise Usage(f"{file} has more than {MAX_INPUT} bytes.", way_out="pass less at once")
    return content


def _token(file: str | None) -> str | None:
    if file is None:
        return None
    token = read_input(file).decode(errors="replace").strip()
    if not token:
        raise Usage(f"{file} holds no token.", way_out="openfang keys create NAME --admin-token")
    return token


def tags(words: tuple[str, ...]) -> frozenset[str]:
    """Read side effects; an unknown one is an error."""
    unknown = sorted(set(words) - TAGS)
    if unknown:
        raise Usage(
            f"There is no side effect {unknown[0]!r}.", way_out=f"one of {', '.join(sorted(TAGS))}"
        )
    return frozenset(words)


def seconds(duration: str | None) -> float | None:
    """Read a duration such as `90s`, `15m`, `1h` or `7d`."""
    if duration is None:
        return None
    found = _DURATION.match(duration)
    total = int(found[1]) * _UNITS[found[2]] if found else 0
    if not 0 < total <= _LONGEST_DAYS * _UNITS["d"]:
        raise Usage(
            f"{duration!r} is no duration between 1s and {_LONGEST_DAYS}d.",
            way_out="90s, 15m, 1h or 7d",
        )
    return float(total)


def plain_name(name: str, what: str) -> str:
    """Check a name: small letters, digits, and . _ - inside."""
    if not _NAME.match(name):
        raise Usage(
            f"{name!r} is no name for a {what}.",
            way_out="1 to 64 of a-z 0-9 . _ -, beginning with a letter or digit",
        )
    return name
