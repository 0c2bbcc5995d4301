"""What is found in a folder before it may run: in what it says, and in each of its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, cast

from openfang.safety.definitions import LONGEST, Finding, alike, scan
from openfang.safety.scan import Scan
from openfang.safety.shapes import SHAPES
from openfang.safety.unseen import revealed, shown, unseen

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from openfang.app.installs.reviews import Described
    from openfang.host.folders import FolderFile
    from openfang.safety.definitions import Neighbours

_LONGEST: Final = 1 << 20
_OVERLAP: Final = 1_000
_EXCERPT: Final = 120
_MOST: Final = 100
_MOST_OF_ONE: Final = 5
_PROGRAMS: Final = (
    b"\x7fELF",
    b"MZ",
    b"\xfe\xed\xfa\xce",
    b"\xfe\xed\xfa\xcf",
    b"\xce\xfa\xed\xfe",
    b"\xcf\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",
    b"\0asm",
)
_UNREADABLE: Final = frozenset({".pyc", ".pyo", ".pyd", ".so", ".dll", ".dylib", ".node", ".exe"})
_SECRETS: Final = Scan(SHAPES)


def findings_of(
    described: Described,
    folder: Path,
    files: Iterable[FolderFile],
    near: Neighbours,
    builtins: Collection[str],
) -> tuple[Finding, ...]:
    """Judge all of it, gravest first."""
    found = [*_in_words(described), *_in_names(described, near, builtins)]
    for file in files:
        found += _in_file(folder / file.path, file.path)
    unique = {(one.code, one.place): one for one in found}
    return tuple(sorted(unique.values(), key=lambda one: not one.serious)[:_MOST])


def _in_words(described: Described) -> Iterator[Finding]:
    own = [tool.name.lower() for tool in described.tools]
    for one in scan(_in_pieces(described.definition), own):
        yield replace(one, place=f"{described.written}: {one.place}")


def _in_pieces(value: object) -> object:
    """Part what is longer than is looked at, so that all of it is; an order lies in one piece."""
    if isinstance(value, str) and len(value) > LONGEST:
        return [value[at : at + LONGEST] for at in range(0, len(value), LONGEST - _OVERLAP)]
    if isinstance(value, Mapping):
        members = cast("Mapping[str, object]", value)
        return {name: _in_pieces(member) for name, member in members.items()}
    if isinstance(value, list | tuple):
        return [_in_pieces(one) for one in cast("Sequence[object]", value)]
    return value


def _in_names(
    described: Described, near: Neighbours, builtins: Collection[str]
) -> Iterator[Finding]:
    """Names that are others' already; to take that of a built-in tool is no accident."""
    for tool in described.tools:
        name = tool.wire_name or tool.name
        for one in alike({"name": name}, near):
            grave = one.serious or one.excerpt in builtins
            yield replace(one, place=f"{described.written}: {shown(name)}", serious=grave)


def _in_file(file: Path, path: str) -> Iterator[Finding]:
    with file.open("rb") as opened:
        data = opened.read(_LONGEST + 1)
    if data.startswith(_PROGRAMS) or PurePosixPath(path).suffix in _UNREADABLE:
        yield Finding(code="unreadable_program", place=path, excerpt=f"{len(data)} bytes")
        return
    try:
        text = data[:_LONGEST].decode(errors="strict" if len(data) <= _LONGEST else "ignore")
    except UnicodeDecodeError:
        return
    if len(data) > _LONGEST:
        yield Finding(code="overlong", place=path, excerpt="over 1 MiB", serious=False)
    yield from _hidden(text, path)
    yield from _secrets(data[:_LONGEST], path)


def _hidden(text: str, path: str) -> Iterator[Finding]:
    """Tell of characters that nobody sees; pages of old texts end with a form feed."""
    count = 0
    for number, line in enumerate(text.replace("\x0c", " ").split("\n"), 1):
        runs = [run for run in unseen(line.rstrip("\r")) if not run.usual]
        if runs:
            first = runs[0]
            meaning = revealed("".join(line[run.start : run.end] for run in runs))
            around = shown(line[max(0, first.start - 20) : first.end + 20])
            excerpt = (shown(meaning) or around)[:_EXCERPT]
            yield Finding(code="hidden_characters", place=f"{path}:{number}", excerpt=excerpt)
            count += 1
        if count == _MOST_OF_ONE:
            return


def _secrets(data: bytes, path: str) -> Iterator[Finding]:
    for span in _SECRETS.spans(data)[:_MOST_OF_ONE]:
        line = data.count(b"\n", 0, span.start) + 1
        excerpt = f"a secret of the kind {span.kind}"
        place = f"{path}:{line}"
        yield Finding(code="secret_in_text", place=place, excerpt=excerpt, serious=False)
