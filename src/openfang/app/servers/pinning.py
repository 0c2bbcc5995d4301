"""Whether a command fetches packages when it starts, and whether each is bound to one version.

What is not understood may change. A program that fetches nothing by itself is taken for what it is.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

_NPM_VERSION = re.compile(r"(?:@[\w.-]+/)?[\w.-]+@\d+\.\d+\.\d+(?:[-+][\w.+-]+)?")
_PYTHON_VERSION = re.compile(r"[\w.-]+(?:\[[\w,.-]*\])?(?:==|@)\d+(?:[.!+-]?\w+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Runner:
    """How packages are named to a program. `instead` of the first word, or `beside` it.

    `flags` stand alone and `settings` have a value; neither changes what is fetched. Where options
    are read `to_the_end`, those behind the first word count as well.
    """

    pinned: re.Pattern[str]
    instead: frozenset[str] = frozenset()
    beside: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    settings: frozenset[str] = frozenset()
    first: bool = True
    to_the_end: bool = False


_NPX: Final = _Runner(
    pinned=_NPM_VERSION,
    instead=frozenset({"-p", "--package"}),
    flags=frozenset(
        {
            *("-y", "--yes", "-q", "--quiet", "-s", "--silent", "--offline", "--prefer-offline"),
            *("--no-install", "--bun", "-b", "--ignore-scripts", "--no-audit", "--no-fund"),
        }
    ),
    settings=frozenset({"--cache", "--prefix", "--loglevel"}),
)
_NPM: Final = _Runner(
    pinned=_NPM_VERSION,
    instead=_NPX.instead,
    flags=_NPX.flags,
    settings=_NPX.settings,
    to_the_end=True,
)
_UV_FLAGS: Final = frozenset(
    {
        *("-q", "--quiet", "-v", "--verbose", "--isolated", "--offline", "--no-cache", "-n"),
        *("--no-progress", "--native-tls", "--no-config", "--no-env-file", "--managed-python"),
        *("--refresh", "--no-build", "--frozen", "--locked", "--no-sync", "--no-project"),
    }
)
_UV_SETTINGS: Final = frozenset(
    {"-p", "--python", "--directory", "--project", "--cache-dir", "--color", "--env-file"}
)
_UVX: Final = _Runner(
    pinned=_PYTHON_VERSION,
    instead=frozenset({"--from"}),
    beside=frozenset({"-w", "--with"}),
    flags=_UV_FLAGS,
    settings=_UV_SETTINGS,
)
_UV_RUN: Final = _Runner(
    pinned=_PYTHON_VERSION,
    beside=_UVX.beside,
    flags=_UV_FLAGS | {"-m", "--module", "-s", "--script", "--no-dev", "--all-extras"},
    settings=_UV_SETTINGS | {"--extra", "--group", "--package"},
    first=False,
)
_PIPX: Final = _Runner(
    pinned=_PYTHON_VERSION,
    instead=frozenset({"--spec"}),
    beside=frozenset({"--with"}),
    flags=frozenset({"-q", "--quiet", "-v", "--verbose", "--no-cache"}),
    settings=frozenset({"--python"}),
)
_RUNNERS: Final[dict[str, tuple[tuple[tuple[str, ...], _Runner], ...]]] = {
    "npx": (((), _NPX),),
    "pnpx": (((), _NPX),),
    "bunx": (((), _NPX),),
    "uvx": (((), _UVX),),
    "npm": ((("exec",), _NPM), (("x",), _NPM)),
    "pnpm": ((("dlx",), _NPM),),
    "yarn": ((("dlx",), _NPM),),
    "bun": ((("x",), _NPX),),
    "uv": ((("tool", "run"), _UVX), (("run",), _UV_RUN)),
    "pipx": ((("run",), _PIPX),),
}
_SHELLS: Final = frozenset({"sh", "bash", "zsh", "dash", "ash", "ksh", "fish"})
_WRAPPERS: Final = frozenset(
    {
        *("env", "nice", "nohup", "timeout", "time", "setsid", "stdbuf", "ionice", "taskset"),
        *("sudo", "doas", "command", "exec", "xvfb-run", "dbus-run-session", "cmd"),
    }
)
_LINKS = re.compile(r"[;&|<>()`$\n]")
_BETWEEN = re.compile(r"[;&|<>()`$\s\"']+")


def may_change(command: Sequence[str]) -> bool:
    """Whether another start of the command may run something else, by what it fetches."""
    program, *rest = command
    name = _name(program)
    if name in _RUNNERS:
        return _runner_may_change(name, rest)
    if name in _SHELLS:
        return any(_line_may_change(word) for word in rest)
    if name in _WRAPPERS:
        return any(may_change(rest[at:]) for at, word in enumerate(rest) if _starts(word))
    if name.startswith("python") and rest[:1] == ["-m"] and rest[1:]:
        return may_change(rest[1:])
    return False


def _starts(word: str) -> bool:
    name = _name(word)
    return name in _RUNNERS or name in _SHELLS or name.startswith("python")


def _name(word: str) -> str:
    name = word.replace("\\", "/").rpartition("/")[2].lower()
    return name.removesuffix(".exe").removesuffix(".cmd")


def _line_may_change(line: str) -> bool:
    """Read a shell's line: a single command is looked into, several are not."""
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    if _LINKS.search(line):
        return any(_name(word) in _RUNNERS for word in _BETWEEN.split(line))
    while words and re.match(r"\w+=", words[0]):
        words = words[1:]
    return bool(words) and may_change(words)


def _runner_may_change(name: str, words: Sequence[str]) -> bool:
    for leading, runner in _RUNNERS[name]:
        rest = _behind(words, leading)
        if rest is not None:
            return not _bound(runner, rest)
    return False


def _behind(words: Sequence[str], leading: Sequence[str]) -> list[str] | None:
    """Take out the words that make the program fetch; what stands between them are options."""
    rest, taken = list(words), list[str]()
    for wanted in leading:
        if wanted not in rest:
            return None
        at = rest.index(wanted)
        if at and not rest[0].startswith("-"):
            return None
        taken += rest[:at]
        rest = rest[at + 1 :]
    return [*taken, *rest]


def _bound(runner: _Runner, words: Sequence[str]) -> bool:
    """Whether all that is fetched is named with its version."""
    line = _Line(runner, words)
    line.read()
    if line.strange:
        return False
    named = line.named if line.instead or not runner.first else [*line.named, line.first]
    return all(runner.pinned.fullmatch(one) for text in named for one in text.split(","))


class _Line:
    """What a runner reads of its command line: packages, the first word, and what is strange."""

    def __init__(self, runner: _Runner, words: Sequence[str]) -> None:
        self.named: list[str] = []
        self.instead = False
        self.first = ""
        self.strange = False
        self._runner = runner
        self._ahead = list(reversed(words))

    def read(self) -> None:
        """Read as far as the words are the runner's, and not meant for what it starts."""
        while self._ahead:
            word = self._ahead.pop()
            if word.startswith("-") and word != "--":
                self._option(word)
                continue
            self.first = self.first or (self._next() if word == "--" else word)
            if word == "--" or not self._runner.to_the_end:
                return

    def _option(self, word: str) -> None:
        runner = self._runner
        option, mark, value = word.partition("=")
        if option in runner.instead or option in runner.beside:
            self.instead = self.instead or option in runner.instead
            self.named.append(value if mark else self._next())
        elif option in runner.settings:
            _ = mark or self._next()
        elif option not in runner.flags:
            # Behind the first word it is meant for what is started, if it is no short form.
            short = any(one.startswith(option) for one in runner.instead)
            self.strange = self.strange or not self.first or short or option[1] != "-"

    def _next(self) -> str:
        return self._ahead.pop() if self._ahead else ""
