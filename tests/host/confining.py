"""Starts programs in the sandbox as the product does: our home and a user's home are the test's."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from anyio import to_thread

from openfang.host.backends import Landlocked, available, sandboxed
from openfang.host.egress import EgressRules, proxy_variables
from openfang.host.fallback import fence_version
from openfang.host.household import Household
from openfang.host.process import Finished, Launch, Limits, run
from openfang.host.reach import Wish, confinement
from openfang.host.sandbox import Bridged, Bubblewrap, Handed, Local
from openfang.host.users import own_user

if TYPE_CHECKING:
    from openfang.host.egress import Egress

# A program that misbehaves in a test is held by the kernel, too.
HELD = Limits(processes=4000, file_size=64_000_000, cpu_seconds=20)
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


@cache
def bubblewrap() -> Bubblewrap:
    found = available()
    assert isinstance(found, Bubblewrap), found
    return found


@cache
def landlocked() -> Landlocked:
    """The degraded sandbox, as on a machine without bubblewrap."""
    version = fence_version()
    if not version:
        pytest.skip("this kernel has no Landlock")
    return Landlocked(version, "bubblewrap is not installed")


@dataclass(frozen=True, kw_only=True)
class Ground:
    """The folders of one test."""

    root: Path
    search: str = f"{Path(sys.executable).parent}:{SYSTEM_PATH}"
    environment: dict[str, str] = field(default_factory=dict[str, str])
    backend: Bubblewrap | Landlocked | None = None
    processes: int = 4000

    @property
    def user(self) -> Path:
        return self.root / "user"

    @property
    def ours(self) -> Path:
        return self.root / "openfang"

    @property
    def folder(self) -> Path:
        return self.ours / "servers" / "echo"

    @property
    def unix_socket(self) -> Path:
        return self.folder / "egress.sock"

    def make(self) -> Ground:
        for folder in (self.user, self.folder):
            folder.mkdir(parents=True, exist_ok=True)
        return self

    def launch(
        self,
        *argv: str,
        cwd: Path | None = None,
        egress: Egress | None = None,
        read: tuple[Path, ...] = (),
        write: tuple[Path, ...] = (),
        timeout: float = 20,
    ) -> Launch:
        """Confine a command. Looks at the disk."""
        self.make()
        wish = Wish(
            argv=argv,
            cwd=cwd or self.folder,
            search=self.search,
            home=self.folder / "home",
            tmp=self.folder / "tmp",
            read=read,
            write=write,
        )
        network = None
        if egress is not None:
            network = Bridged(egress.unix_socket) if egress.unix_socket else Handed()
            network = Local(egress.port) if egress.port else network
        household = Household.look(user=self.user, ours=self.ours)
        command, limits = confinement(wish, household, network)
        limits = replace(limits, user=own_user(limits.home))
        launch = Launch(
            argv=command,
            cwd=Path("/"),
            environment={
                "PATH": self.search,
                "HOME": str(limits.home),
                "TMPDIR": str(limits.tmp),
                **(proxy_variables(EgressRules(), egress.port) if egress else {}),
                **self.environment,
            },
            timeout=timeout,
            limits=replace(HELD, processes=self.processes),
            prepare=egress.prepare if isinstance(network, Handed) and egress else None,
        )
        return sandboxed(launch, limits, self.backend or bubblewrap())

    async def run(
        self,
        *argv: str,
        cwd: Path | None = None,
        egress: Egress | None = None,
        read: tuple[Path, ...] = (),
        write: tuple[Path, ...] = (),
    ) -> Finished:
        """Run a command in the sandbox."""

        def build() -> Launch:
            return self.launch(*argv, cwd=cwd, egress=egress, read=read, write=write)

        return await run(await to_thread.run_sync(build))

    async def shell(self, script: str, *arguments: str | Path, cwd: Path | None = None) -> str:
        """Run a script of the shell, and give what it printed, on both outputs."""
        named = [str(argument) for argument in arguments]
        finished = await self.run("sh", "-c", script, "sh", *named, cwd=cwd)
        return (finished.stdout + finished.stderr).decode()


def executable(path: Path, text: str) -> Path:
    """Write a program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def alive(pid: int) -> bool:
    """Whether a process runs; one that waits to be reaped does not."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return line.rpartition(")")[2].split()[0] not in "ZX"


def marked(word: str) -> list[int]:
    """Find the living processes that have a word in their command line, from outside."""
    names = (entry.name for entry in Path("/proc").iterdir())
    return [pid for pid in map(int, filter(str.isdigit, names)) if _has(pid, word)]


def _has(pid: int, word: str) -> bool:
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return word.encode() in line and alive(pid) and pid != os.getpid()
