"""Try changed code in forked children: which tests run which line, and whether one of them fails.

Nothing is ever written to a source file. Inside functions a child exchanges the code of the living
function; elsewhere it imports the changed module afresh. A program that a test starts does not see
the change, so what only such a program would show counts for nothing here.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import resource
import signal
import sys
import time
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, NoReturn, TypeVar

import coverage
import pytest
from tools.mutations import Mutation, mutated

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
SURVIVED, KILLED, LATE, UNFIT = 0, 1, 2, 9
_PYTEST = ("-n0", "-q", "-p", "no:cacheprovider", "--timeout=0", "--hypothesis-seed=0")
_MEMORY = 8 << 30
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change of one file, and the tests that may notice it in the order of asking."""

    file: Path
    mutation: Mutation
    tests: tuple[str, ...]
    seconds: float
    """What these tests usually take, all together."""
    fresh: bool
    """Whether it runs when its module is imported, so that the module must be."""

    def __str__(self) -> str:
        change = f"{self.mutation.before}  ->  {self.mutation.after}"
        return f"{self.file.relative_to(ROOT)}:{self.mutation.line}: {change}"

    def code(self) -> CodeType:
        """Compile the file with the change in it."""
        tree = mutated(self.file.read_text("utf-8"), self.mutation.number)
        return compile(tree, str(self.file), "exec", dont_inherit=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the tests did while nothing was broken: who ran which line, and how long each took."""

    lines: dict[Path, dict[int, list[str]]]
    seconds: dict[str, float]


def given(act: Callable[[], _Found]) -> _Found:
    """Do something in a forked child, so that what it imports is not imported here."""
    mine, other = os.pipe()
    if pid := os.fork():
        os.close(other)
        with open(mine, "rb") as answer:  # noqa: PTH123 - a descriptor has no path
            found: _Found = pickle.load(answer)  # noqa: S301 - our own child wrote it
        os.waitpid(pid, 0)
        return found
    _silence(1)
    with open(other, "wb") as answer:  # noqa: PTH123 - a descriptor has no path
        pickle.dump(act(), answer)
    os._exit(0)


def outcomes(
    mutants: Sequence[Mutant], trial: Callable[[Mutant], int], jobs: int
) -> list[tuple[Mutant, int]]:
    """Try mutants side by side, each in a child of its own."""
    waiting, running = list(reversed(mutants)), dict[int, Mutant]()
    found: list[tuple[Mutant, int]] = []
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop()
            running[_started(trial, mutant)] = mutant
        pid, code = _ended()
        mutant = running.pop(pid)
        found.append((mutant, code))
        print(".x"[code == SURVIVED], end="", file=sys.stderr, flush=True)
    return found


def _started(trial: Callable[[Mutant], int], mutant: Mutant) -> int:
    pid = os.fork()
    if not pid:
        _confine(mutant.seconds)
        _leave(trial, mutant)
    return pid


def _confine(seconds: float) -> None:
    """Let a child that waits or grows for ever end, and with it all that it starts."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 60 + 6 * seconds)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    _silence(0, 1, 2)


def _silence(*descriptors: int) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in descriptors:
        os.dup2(nowhere, descriptor)


def _leave(trial: Callable[[Mutant], int], mutant: Mutant) -> NoReturn:
    code = UNFIT  # what breaks here and not in a test says nothing about the tests
    try:
        code = trial(mutant)
    finally:
        os._exit(code)


def _ended() -> tuple[int, int]:
    """Wait for a child, and say how it ended; one that a signal ended has failed or was late."""
    done = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
    assert done is not None  # noqa: S101 - it waits until there is one
    # What it started goes first: while it is not waited for, nobody else can have its number.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(done.si_pid, signal.SIGKILL)
    _, status = os.waitpid(done.si_pid, 0)
    if os.WIFEXITED(status):
        return done.si_pid, os.WEXITSTATUS(status)
    return done.si_pid, LATE if os.WTERMSIG(status) == signal.SIGALRM else KILLED


@dataclass(slots=True, eq=False)
class _Observer:
    coverage: coverage.Coverage
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    failed: set[str] = field(default_factory=set[str])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.coverage.switch_context(item.nodeid)
        began = time.perf_counter()
        result = yield
        self.seconds[item.nodeid] = time.perf_counter() - began
        self.coverage.switch_context("")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self.failed.add(report.nodeid)


def observed(files: Sequence[Path], tests: Sequence[str]) -> Seen:
    """Run the tests, and note which lines of the files each one runs; what fails is left out."""
    watch = coverage.Coverage(data_file=None, config_file=False, include=list(map(str, files)))
    observer = _Observer(watch)
    with watch.collect():
        pytest.main([*_PYTEST, *tests], plugins=[observer])
    data = watch.get_data()
    return Seen(
        lines={file: data.contexts_by_lineno(str(file)) for file in files},
        seconds={
            test: seconds
            for test, seconds in observer.seconds.items()
            if test not in observer.failed
        },
    )


@dataclass(slots=True, eq=False)
class _Alive:
    """Collects the tests once; each mutant's child then changes the living functions."""

    mutants: Sequence[Mutant]
    jobs: int
    found: list[tuple[Mutant, int]] = field(default_factory=list[tuple[Mutant, int]])
    failed: bool = False

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        functions = _functions()
        gc.freeze()

        def trial(mutant: Mutant) -> int:
            if not _exchange(functions, mutant.code()):
                return UNFIT
            return self._asked([items[test] for test in mutant.tests])

        self.found = outcomes(self.mutants, trial, self.jobs)
        return True

    def _asked(self, items: list[pytest.Item]) -> int:
        for item, after in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if self.failed:
                return KILLED
        return SURVIVED

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed


def tried_alive(
    mutants: Sequence[Mutant], tests: Sequence[str], jobs: int
) -> list[tuple[Mutant, int]]:
    """Try what is inside functions."""
    session = _Alive(mutants, jobs)
    pytest.main([*_PYTEST, *tests], plugins=[session])
    return session.found


_Functions = dict[tuple[str, str, int], list[FunctionType]]


def _key(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _functions() -> _Functions:
    """Every living function of ours, by where it is written."""
    found: _Functions = {}
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType) and thing.__code__.co_filename.startswith(str(SOURCE)):
            found.setdefault(_key(thing.__code__), []).append(thing)
    return found


def _exchange(functions: _Functions, module: CodeType) -> bool:
    """Put changed code into the functions that have it; say whether there were any."""
    changed = False
    for code in _codes(module):
        for function in functions.get(_key(code), []):
            if function.__code__ == code:
                continue
            try:
                function.__code__ = code
            except ValueError:
                return False
            changed = True
    return changed


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


class _Loader(SourceFileLoader):
    """Gives a module the changed code."""

    def __init__(self, name: str, mutant: Mutant) -> None:
        super().__init__(name, str(mutant.file))
        self._mutant = mutant

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - the loader's signature
        return self._mutant.code()


@dataclass(frozen=True, slots=True)
class _Finder:
    """Finds the one changed module; the others are found as ever."""

    mutant: Mutant

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:  # noqa: ARG002 - the finder's signature
        parts = self.mutant.file.relative_to(SOURCE).with_suffix("").parts
        if name != ".".join(part for part in parts if part != "__init__"):
            return None
        return spec_from_file_location(name, self.mutant.file, loader=_Loader(name, self.mutant))


@dataclass(frozen=True, slots=True)
class _Only:
    """Keeps the tests to be asked, in the order of asking."""

    tests: tuple[str, ...]

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        order = {test: at for at, test in enumerate(self.tests)}
        items[:] = sorted(
            (one for one in items if one.nodeid in order), key=lambda i: order[i.nodeid]
        )


def tried_afresh(mutants: Sequence[Mutant], jobs: int) -> list[tuple[Mutant, int]]:
    """Try what runs when its module is imported; here nothing of ours may be imported yet."""
    return outcomes(mutants, _afresh, jobs)


def _afresh(mutant: Mutant) -> int:
    sys.meta_path.insert(0, _Finder(mutant))
    files = dict.fromkeys(test.partition("::")[0] for test in mutant.tests)
    code = pytest.main([*_PYTEST, "-x", *files], plugins=[_Only(mutant.tests)])
    survived = {pytest.ExitCode.OK: SURVIVED, pytest.ExitCode.USAGE_ERROR: UNFIT}
    return survived.get(pytest.ExitCode(code), KILLED)
