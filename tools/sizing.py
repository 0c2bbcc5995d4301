"""Compute how many nodes and what database a number of agents takes, from measured figures.

`python -m tools.sizing` prints the table of docs/sizing.md; a test holds the two together. What is
measured stands in `MEASURED` with the command that shows it; all else is multiplication.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One node on Postgres: `make bench-nodes`, on two cores, CPython 3.11."""

    call_us: float = 265.0
    """CPU of a node for a call, 16 callers side by side."""
    call_postgres_us: float = 62.0
    call_statements: float = 0.33
    call_bytes: float = 1_867.0
    lone_call_us: float = 567.0
    """The same for a caller that is alone: two statements each."""
    lone_postgres_us: float = 250.0
    message_us: float = 9_030.0
    """A message to an agent that is a program: a durable task, its calls, its session."""
    message_postgres_us: float = 5_170.0
    message_bytes: float = 8_602.0
    node_megabytes: float = 79.0
    agent_kilobytes: float = 12.6
    session_kilobytes: float = 1.4
    connection_kilobytes: float = 7.2
    idle_statements: float = 3.2
    connections: int = 19
    """To the database, at most: 8 read, the others write, listen, beat and work on queues."""


MEASURED = Measured()
BUSY = 0.5
"""The share of a core that is planned with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What so many agents do: each makes some calls an hour, and gets some messages."""

    agents: int
    calls_per_hour: float = 60.0
    messages_per_hour: float = 6.0
    kept_days: int = 30

    @property
    def calls(self) -> float:
        """Calls a second."""
        return self.agents * self.calls_per_hour / 3_600

    @property
    def messages(self) -> float:
        """Messages a second."""
        return self.agents * self.messages_per_hour / 3_600


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What it takes."""

    load: Load
    nodes: int
    postgres_cores: float
    connections: int
    megabytes: float
    gigabytes_a_day: float

    @property
    def kept_terabytes(self) -> float:
        """What the log is by the time that its oldest part may go."""
        return self.gigabytes_a_day * self.load.kept_days / 1_000


def plan(load: Load, one: Measured = MEASURED) -> Plan:
    """Compute it."""
    cpu = (load.calls * one.call_us + load.messages * one.message_us) / 1e6
    server = (load.calls * one.call_postgres_us + load.messages * one.message_postgres_us) / 1e6
    nodes = max(2, ceil(cpu / BUSY))
    stored = load.calls * one.call_bytes + load.messages * one.message_bytes
    return Plan(
        load=load,
        nodes=nodes,
        postgres_cores=server / BUSY,
        connections=nodes * one.connections,
        megabytes=one.node_megabytes + load.agents * one.agent_kilobytes / 1_000,
        gigabytes_a_day=stored * 86_400 / 1e9,
    )


def table() -> str:
    """Write the table of the page."""
    head = (
        "| agents | calls/s | messages/s | nodes | cores of Postgres | connections | memory of a "
        "node | log a day | log in 30 days |\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
    )
    return head + "\n".join(
        _row(plan(Load(agents=agents))) for agents in (100, 1_000, 10_000, 100_000, 1_000_000)
    )


def _row(one: Plan) -> str:
    load = one.load
    cells = (
        f"{load.agents:,}",
        f"{load.calls:,.0f}",
        f"{load.messages:,.1f}",
        f"{one.nodes:,}",
        f"{one.postgres_cores:,.1f}",
        f"{one.connections:,}",
        f"{one.megabytes:,.0f} MB",
        f"{one.gigabytes_a_day:,.1f} GB",
        f"{one.kept_terabytes:,.2f} TB",
    )
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print(table())
