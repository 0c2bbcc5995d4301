"""The numbers of good code: how long functions and modules are, and what is rarely a good sign.

`python -m tools.measure` measures the product; `python -m tools.measure FOLDER...` any other code.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT: Final = Path(__file__).parent.parent
PRODUCT: Final = ROOT / "src" / "openfang"
TESTS: Final = ROOT / "tests"
LONG_MODULE: Final = 400
_WINDOW: Final = 8
_WORST: Final = 10
_NARRATES: Final = ("this function", "this method", "this class", "this module", "helper")
_MOCKS: Final = frozenset({"Mock", "MagicMock", "AsyncMock", "create_autospec"})

Function = ast.FunctionDef | ast.AsyncFunctionDef
ANCHORS: Final = {
    "median function": "5-11 lines",
    "p90 function": "22-46 lines",
    "broad excepts": "one in ten",
    "imports inside functions": "for start-up time only",
    "rings between packages": "0",
    "mocks per 100 tests": "next to none",
}


@dataclass(frozen=True, slots=True)
class Module:
    """One file, parsed."""

    path: Path
    name: str
    source: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        """How long it is."""
        return self.source.count("\n")

    @property
    def package(self) -> str:
        """The part of the product that it belongs to."""
        return ".".join(self.name.split(".")[:2])


@dataclass(slots=True)
class Numbers:
    """What was counted, and where."""

    functions: dict[str, int] = field(default_factory=dict[str, int])
    long_modules: dict[str, int] = field(default_factory=dict[str, int])
    handlers: int = 0
    broad: list[str] = field(default_factory=list[str])
    inner_imports: list[str] = field(default_factory=list[str])
    rings: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    narrating: list[str] = field(default_factory=list[str])
    repeated: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    lines: int = 0

    @property
    def median(self) -> float:
        """Half of all functions are no longer."""
        return median(self.functions.values())

    @property
    def p90(self) -> float:
        """Nine of ten functions are no longer."""
        return quantiles(self.functions.values(), n=10)[-1]

    def worst(self) -> list[tuple[str, int]]:
        """The longest functions."""
        return Counter(self.functions).most_common(_WORST)


def modules(folder: Path) -> list[Module]:
    """Read all of a folder's Python files."""
    found: list[Module] = []
    for path in sorted(folder.rglob("*.py")):
        source = path.read_text()
        parts = (folder.name, *path.relative_to(folder).with_suffix("").parts)
        name = ".".join(part for part in parts if part != "__init__")
        found.append(Module(path, name, source, ast.parse(source)))
    return found


def measure(found: Iterable[Module]) -> Numbers:
    """Count everything in them."""
    numbers, read = Numbers(), list(found)
    for module in read:
        numbers.lines += module.lines
        if module.lines > LONG_MODULE:
            numbers.long_modules[module.name] = module.lines
        _functions(module, numbers)
        _handlers(module, numbers)
    numbers.rings = rings(_graph(read))
    numbers.repeated = list(_repeated(read))
    return numbers


def _functions(module: Module, numbers: Numbers) -> None:
    for node in ast.walk(module.tree):
        if not isinstance(node, Function):
            continue
        where = f"{module.name}:{node.lineno} {node.name}"
        numbers.functions[where] = _length(node)
        if _narrates(node):
            numbers.narrating.append(where)
        inner = (one for one in ast.walk(node) if isinstance(one, ast.Import | ast.ImportFrom))
        numbers.inner_imports += (f"{module.name}:{one.lineno}" for one in inner)


def _length(node: Function) -> int:
    """From `def` to the last line, without the docstring."""
    said = ast.get_docstring(node, clean=False)
    return (
        (node.end_lineno or node.lineno) - node.lineno + 1 - (said.count("\n") + 1 if said else 0)
    )


def _narrates(node: Function) -> bool:
    """Whether a docstring says no more than the name does, or speaks of itself."""
    said = (ast.get_docstring(node) or "").lower().rstrip(".")
    words = {word.strip("`,") for word in said.split()} - {"a", "an", "the"}
    return bool(words) and (said.startswith(_NARRATES) or words <= set(node.name.split("_")))


def _handlers(module: Module, numbers: Numbers) -> None:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ExceptHandler):
            numbers.handlers += 1
            if _is_broad(node) and not _raises(node):
                numbers.broad.append(f"{module.name}:{node.lineno}")


def _is_broad(node: ast.ExceptHandler) -> bool:
    kind = node.type
    return kind is None or (
        isinstance(kind, ast.Name) and kind.id in {"Exception", "BaseException"}
    )


def _raises(node: ast.ExceptHandler) -> bool:
    """Whether it hands the error on: then it only cleans up."""
    return any(isinstance(one, ast.Raise) and one.exc is None for one in ast.walk(node))


def _graph(found: list[Module]) -> dict[str, set[str]]:
    """Which package imports which when it is loaded."""
    names = {module.package for module in found}
    graph: dict[str, set[str]] = defaultdict(set)
    for module in found:
        for target in _imported(module.tree):
            package = ".".join(target.split(".")[:2])
            if package in names and package != module.package:
                graph[module.package].add(package)
    return graph


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom(module=str(module), level=0):
                yield from (f"{module}.{alias.name}" for alias in node.names)
            case _:
                pass


def rings(graph: dict[str, set[str]]) -> list[tuple[str, ...]]:
    """Find who can be reached from themselves."""
    reach = {name: _reached(graph, name) for name in graph}
    found = {
        tuple(sorted(one for one in reach[name] if name in reach.get(one, ()))) for name in graph
    }
    return sorted(ring for ring in found if ring)


def _reached(graph: dict[str, set[str]], name: str) -> set[str]:
    seen, todo = set[str](), list(graph[name])
    while todo:
        one = todo.pop()
        if one not in seen:
            seen.add(one)
            todo += graph.get(one, ())
    return seen


def _repeated(found: list[Module]) -> Iterator[tuple[str, ...]]:
    """Find runs of lines that are written twice, each run once."""
    places: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for module in found:
        lines = _code_lines(module)
        for start in range(len(lines) - _WINDOW + 1):
            window = tuple(text for _, text in lines[start : start + _WINDOW])
            places[window].append((module.name, lines[start][0]))
    last: dict[str, int] = {}
    for where in places.values():
        if len(where) > 1 and all(
            line > last.get(name, -_WINDOW) + _WINDOW for name, line in where
        ):
            yield tuple(f"{name}:{line}" for name, line in where)
        if len(where) > 1:
            last.update(where)


def _code_lines(module: Module) -> list[tuple[int, str]]:
    """Lines that do something: no imports, comments, brackets or strings of their own."""
    skipped = {
        line
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = ((number, text.strip()) for number, text in enumerate(module.source.splitlines(), 1))
    return [
        (number, text)
        for number, text in lines
        if number not in skipped and any(map(str.isalnum, text)) and not text.startswith("#")
    ]


def mocks(found: Iterable[Module]) -> tuple[int, int]:
    """Count mocks, and tests."""
    made = tests = 0
    for module in found:
        for node in ast.walk(module.tree):
            tests += isinstance(node, Function) and node.name.startswith("test_")
            made += isinstance(node, ast.Name | ast.Attribute) and _name(node) in _MOCKS
    return made, tests


def _name(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr


def table(numbers: Numbers) -> list[tuple[str, str]]:
    """Name the numbers."""
    return [
        ("lines", f"{numbers.lines:,}"),
        ("functions", f"{len(numbers.functions):,}"),
        ("median function", f"{numbers.median:g} lines"),
        ("p90 function", f"{numbers.p90:g} lines"),
        (f"modules over {LONG_MODULE} lines", f"{len(numbers.long_modules)}"),
        ("broad excepts", f"{len(numbers.broad)} of {numbers.handlers}"),
        ("imports inside functions", f"{len(numbers.inner_imports)}"),
        ("rings between packages", f"{len(numbers.rings)}"),
        (f"runs of {_WINDOW} lines written twice", f"{len(numbers.repeated)}"),
        ("docstrings that narrate", f"{len(numbers.narrating)}"),
    ]


def _print(numbers: Numbers) -> None:
    for name, value in table(numbers):
        print(f"{name:36} {value:>14}   {ANCHORS.get(name, '')}".rstrip())


def _places(title: str, places: Iterable[str]) -> None:
    listed = list(places)
    if listed:
        print(f"\n{title}:", *listed, sep="\n  ")


def main(folders: list[str]) -> None:
    """Print the numbers beside those of code that is a pleasure to read."""
    for folder in map(Path, folders or [str(PRODUCT)]):
        numbers = measure(modules(folder))
        print(f"{folder.name:36} {'here':>14}   good code")
        _print(numbers)
        if folder == PRODUCT:
            made, tests = mocks(modules(TESTS))
            name = "mocks per 100 tests"
            print(f"{name:36} {made / tests * 100:>14.1f}   {ANCHORS[name]}")
        _places("The longest functions", (f"{lines:4} {name}" for name, lines in numbers.worst()))
        _places("Long modules", (f"{size:4} {name}" for name, size in numbers.long_modules.items()))
        _places("Broad excepts", numbers.broad)
        _places("Rings", (" - ".join(ring) for ring in numbers.rings))
        _places("Written twice", (" = ".join(where) for where in numbers.repeated))
        _places("Docstrings that narrate", numbers.narrating)


if __name__ == "__main__":
    main(sys.argv[1:])
