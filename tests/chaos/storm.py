"""The storm: rounds of faults over one node under load, in an order that a seed decides."""

from __future__ import annotations

import time
from contextlib import ExitStack
from random import Random
from typing import TYPE_CHECKING, Protocol

from tests.chaos import checks, to_servers
from tests.chaos.by_peers import Flood, Reloads, SlowPeers
from tests.chaos.ledger import Ledger
from tests.chaos.load import Load
from tests.chaos.node import BY_HTTP, BY_STDIO, make_node, stdio_entry, until
from tests.chaos.processes import orphans, servers, vitals
from tests.chaos.to_daemon import Ended, Slain, Terminated
from tests.chaos.to_disk import DiskFull, Locked
from tests.chaos.ways import ByAgent, ByApi, ByBridge, ByMcp, BySession, ByTask

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.chaos.faults import Fault
    from tests.chaos.node import Node
    from tests.chaos.processes import Vitals

WARM_UP = 100
BETWEEN_FAULTS = 20
ROUNDS_A_LIFE = 3
GUEST = stdio_entry("guest")


class Say(Protocol):
    """Tells somebody how it goes."""

    def __call__(self, line: str, /) -> object: ...


class Storm:
    """Everything that happens between the first start and the last look."""

    def __init__(self, disk: Path, seed: int, say: Say) -> None:
        self.ledger = Ledger()
        self.node: Node = make_node(disk)
        self.wrong: list[str] = []
        self._disk = disk
        self._say = say
        self._random = Random(seed)  # noqa: S311 - so that the same storm comes again
        self._bridge: ByBridge
        self._load: Load
        self._began: Vitals

    def run(self, minutes: float) -> None:
        """Blow for so long, and at least one round; then look at what is left."""
        ends, round_ = time.monotonic() + 60 * minutes, 0
        self.node.start()
        try:
            self.node.wait_until_healthy()
            self._bridge = ByBridge(self.node)
            with Load(self._ways(), self.ledger) as self._load:
                self._live()
                while round_ == 0 or time.monotonic() < ends:
                    round_ += 1
                    self._round()
                    if round_ % ROUNDS_A_LIFE == 1:
                        self._begin_anew()
                self._outlive()
            self.wrong += self._load.broken
            self._look()
        finally:
            self.node.close()
        self._known_are_alone()

    def _ways(self) -> list[ByApi | ByMcp | BySession | ByAgent | ByTask | ByBridge]:
        node, tasks = self.node, self.ledger.tasks
        return [
            *(ByApi(node), ByApi(node), ByMcp(node), BySession(node), self._bridge),
            *(ByAgent(node), ByTask(node, tasks), ByTask(node, tasks)),
        ]

    # Rounds

    def _round(self) -> None:
        for blow in self._blows():
            self._load.wait_for_calls(BETWEEN_FAULTS)
            self._blow(blow)

    def _blows(self) -> list[list[Fault]]:
        """All faults that a daemon outlives: those of one server, some with others beside."""
        node, random = self.node, self._random
        victims = random.sample(BY_STDIO, 3)
        blows: list[list[Fault]] = [
            [to_servers.Killed(node, victims[0])],
            [to_servers.Stopped(node, victims[1])],
            [to_servers.Dripping(node, victims[2])],
            [to_servers.WebKilled(node, random.choice(BY_HTTP))],
            [to_servers.WebStopped(node, random.choice(BY_HTTP))],
        ]
        for beside in (Flood(node), SlowPeers(node), Reloads(node, GUEST)):
            random.choice(blows).append(beside)
        blows.append([DiskFull(node, self._disk)])
        blows.append([Locked(node)])
        random.shuffle(blows)
        return blows

    def _begin_anew(self) -> None:
        endings: list[Ended] = [Terminated(self.node), Slain(self.node)]
        self._random.shuffle(endings)
        for ending in endings:
            self._outlive()
            self._load.wait_for_calls(BETWEEN_FAULTS)
            self._blow([ending])
            self._known_are_alone()
            self._live()

    def _blow(self, faults: Sequence[Fault]) -> None:
        before = servers(self.node.daemon)
        with ExitStack() as stack:
            spells = [stack.enter_context(self.ledger.spell(fault)) for fault in faults]
            for spell in spells:
                self._load.wait_until(
                    lambda one=spell: one.fault.felt(self.ledger.during(one)), spell.fault.name
                )
        for spell in spells:
            during = self.ledger.during(spell)
            failed = sum(not one.well for one in during)
            took = spell.ended - spell.began
            name = f"{spell.fault.name} {spell.fault.touches}"
            self._say(f"{name:45} {took:5.1f} s  {len(during):6} calls, {failed:4} failed")
        if not isinstance(faults[0], Ended):
            self._left_alone(before, {fault.touches for fault in faults})

    def _left_alone(self, before: dict[str, int], touched: set[str]) -> None:
        """A server that nothing was done to is the process that it was."""
        after = servers(self.node.daemon)
        untouched = set(before) - touched - {"guest"}
        anew = sorted(name for name in untouched if after.get(name) != before[name])
        if anew:
            self.wrong.append(f"servers that nobody touched were begun anew: {anew}")

    # Lives

    def _live(self) -> None:
        """Remember what a daemon takes that has just begun, and has served a little."""
        self._load.wait_for_calls(WARM_UP)
        with self._load.quiet():
            self._began = vitals(self.node.daemon)

    def _outlive(self) -> None:
        """See that it takes no more now."""
        began = self._began
        with self._load.quiet():
            ends = time.monotonic() + 20
            found = checks.leaks(began, now := vitals(self.node.daemon))
            while found and time.monotonic() < ends:
                time.sleep(0.1)  # whoever hung up is noticed a little later
                found = checks.leaks(began, now := vitals(self.node.daemon))
        self._say(f"at rest: {_told(began)}, then {_told(now)}")
        self.wrong += [f"life {self.node.lives}: {one}" for one in found]

    def _known_are_alone(self) -> None:
        """See that nothing is left of a daemon that has ended."""
        until(lambda: not self._strangers(), seconds=20, what=self._strangers)

    def _strangers(self) -> list[str]:
        known = {web.process.pid for web in self.node.webs.values()}
        known |= {self._bridge.process.pid, self.node.daemon.process.pid}
        return orphans(known)

    # Afterwards

    def _look(self) -> None:
        node, ledger = self.node, self.ledger
        self.wrong += checks.tasks(node, ledger)
        if not node.daemon.ask("GET", "/api/audit/verify").json["intact"]:
            self.wrong.append("the daemon finds its log broken")
        node.close()
        self.wrong += checks.unexplained(ledger)
        self.wrong += checks.on_record(node.home, ledger)
        self.wrong += checks.endings(node.home)
        self.wrong += checks.chain(node.home)
        self.wrong += checks.log(node.home)


def _told(found: Vitals) -> str:
    files = sum(found.files.values()) + found.sockets
    return (
        f"{files} files, {found.children} children, {found.threads} threads, "
        f"{found.memory / 1e6:.0f} MB"
    )
