"""Wrong requests at every address of A2A: each is answered in its dialect, and nothing breaks."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.faults.answers import EVENTS
from tests.faults.daemon import serving
from tests.faults.dialects import (
    DIALECTS,
    REST03,
    RPC03,
    RPC1,
    Asked,
    Dialect,
    Sending,
)
from tests.faults.mutations import Draft, Fuzz
from tests.faults.tasks import (
    ENABLED,
    PUSHED,
    Peer,
    home_with_agents,
)
from tests.faults.test_fuzz import BUSY, GROWTH, SEED, Attack

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.faults.answers import Reply
    from tests.faults.mutations import Batch

pytestmark = [
    pytest.mark.requirement("C5.3", "C12.2"),
    pytest.mark.timeout(600),
    pytest.mark.needs("bwrap"),
]

# Of the requests of `make fuzz` every tenth is one of these, each round on a new home.
ROUND = 10_000
WANTED = int(os.environ.get("FUZZ_REQUESTS", "20_000")) // 10
REQUESTS = min(ROUND, WANTED)
ROUNDS = max(1, WANTED // ROUND)
CONFIG = f"""
log_level = "warning"
[server]
head_secs = 1
body_secs = 1
idle_secs = 2
{ENABLED}max_tasks = 500
{PUSHED}
"""
PUBLISHED = (
    "/.well-known/agent.json",
    "/.well-known/agent-card.json",
    "/.well-known/jwks.json",
    "/a2a/agents",
    "/a2a/agents/echo/.well-known/agent-card.json",
    "/a2a/agents/echo/rest/extendedAgentCard",
    "/a2a/agents/nobody",
)
HEADERS = (
    (b"A2A-Version", b"0.9"),
    (b"A2A-Version", b"1.0.0"),
    (b"A2A-Version", b"\xff"),
    (b"A2A-Version", b"1.0, 0.3"),
    (b"A2A-Extensions", b"https://example.org/x, , y"),
    (b"A2A-Extensions", b"," * 5000),
    (b"X-A2A-Extensions", b"\xff"),
    (b"Last-Event-ID", b"-1"),
)
PARTS: tuple[dict[str, Any], ...] = (
    {"raw": "no base 64"},
    {"kind": "file", "file": {"bytes": "@@@@"}},
    {"type": "file", "name": "x", "data": "@"},
    {"data": {"deep": [[[[[None]]]]]}},
    {"url": "file:///etc/passwd"},
    {"type": "nothing"},
    {},
)
INTERNAL = -32603
NO_CONTEXT = {"seed": 422, "0.3 rest": 400, "1.0 rest": 400}


@dataclass(slots=True)
class TaskFuzz(Fuzz):
    """Requests in every dialect, about tasks that are there, were there, or never were."""

    tasks: list[str] = field(default_factory=list[str])

    def draft(self) -> Draft:
        """Make a request that is right."""
        asked = self._asked()
        headers = [(b"Host", b"localhost"), (b"Content-Type", b"application/json")]
        headers += [(name.encode(), value.encode()) for name, value in asked.headers.items()]
        if self.random.random() < 0.1:
            headers.append(self.random.choice(HEADERS))
        if self.random.random() < 0.97:
            headers.append((b"Authorization", f"Bearer {self.key}".encode()))
        body = b"" if asked.body is None else json.dumps(asked.body).encode()
        return Draft(asked.method.encode(), asked.path.encode(), headers, body)

    def _asked(self) -> Asked:
        random, dialect = self.random, self.random.choice(DIALECTS)
        # Nobody answers those that ask, so there are few of them.
        agent = "asker" if random.random() < 0.1 else "echo"
        task = random.choice(self.tasks)
        match random.randrange(8):
            case 0:
                return Asked("GET", random.choice(PUBLISHED))
            case 1 | 2 | 3:
                return self._sent(dialect, agent)
            case 4 if dialect.listed:
                return dialect.listed(agent, random.choice(("", "shared", "session_0")))
            case _:
                operation = random.choice([*dialect.of_task])
                return dialect.of_task[operation](agent, task)

    def _sent(self, dialect: Dialect, agent: str) -> Asked:
        random = self.random
        sending = Sending(
            agent=agent,
            id=f"m{random.randrange(10**6)}",
            # Who asks has the word in its conversation until somebody answers.
            context=random.choice(("", "", "session_0", "shared" if agent == "echo" else "")),
            task=random.choice(("", "", "", random.choice(self.tasks))),
            push=random.choice(("", "", "http://127.0.0.1:9/told", "file:///etc/passwd")),
            waits=random.random() < 0.7,
        )
        ways = [dialect.send, *([dialect.stream] if dialect.stream else [])]
        asked = random.choice(ways)(sending)
        if random.random() < 0.1:
            _parts(asked.body).append(random.choice(PARTS))
        return asked


def _parts(body: dict[str, Any]) -> list[Any]:
    message = body.get("params", body)["message"]
    return message["parts" if "parts" in message else "content"]


class TaskAttack(Attack):
    """Sends them."""

    def _judge(self, reply: Reply, batch: Batch) -> None:
        self.answered += 1
        self.statuses.add(reply.status)
        if batch.head_only:
            assert reply.status < 500 or reply.status == 503, reply
            return
        if reply.status >= 500:
            assert reply.problem["rule"] in BUSY, reply
        assert INTERNAL not in codes(reply), reply


def codes(reply: Reply) -> list[int]:
    """The numbers of the errors that an answer tells of."""
    if reply.kind == "application/json":
        bodies = [reply.body]
    else:
        lines = reply.body.split(b"\n")[:-1] if reply.kind.startswith(EVENTS) else []
        bodies = [line[6:] for line in lines if line.startswith(b"data: ")]
    found: list[Any] = [json.loads(body) for body in bodies if body]
    return [one["error"]["code"] for one in found if isinstance(one, dict) and "error" in one]


@pytest.fixture
def attacked(tmp_path: Path) -> Iterator[Peer]:
    home = home_with_agents(tmp_path / "home", CONFIG)
    with serving(home) as daemon:
        yield Peer(daemon)
        assert daemon.healthy()
    assert daemon.ended() == 0
    assert home.complaints() == []
    assert home.verified()["intact"]
    assert {len(outcomes) for outcomes in home.endings().values()} <= {1}


@pytest.mark.parametrize("seed", range(SEED, SEED + ROUNDS))
async def test_whatever_is_sent_to_agents_is_answered(attacked: Peer, seed: int) -> None:
    random = Random(seed)  # noqa: S311 - so that the same requests come again
    tasks = [attacked.send(Sending(agent=agent))["id"] for agent in ("echo", "asker") * 3]
    fuzz = TaskFuzz(attacked.daemon.key, random, tasks=[*tasks, "task_0", "", "%00", "%C3%A9"])
    attack = TaskAttack(attacked.daemon, fuzz)
    await attack.run(REQUESTS // 5)
    before = attacked.daemon.memory()
    await attack.run(REQUESTS)
    assert attacked.daemon.memory() - before < GROWTH
    assert attack.statuses >= {200, 400, 401, 404, 405, 409, 415, 422}
    assert RPC1.state(attacked.ask(RPC1.send(Sending()))) == "completed"


def test_what_once_broke_it_is_refused(attacked: Peer) -> None:
    for dialect in DIALECTS:
        answer = attacked.ask(dialect.send(Sending(context="session_0")))
        assert dialect.code(answer) == (-32602 if dialect.in_envelope else NO_CONTEXT[dialect.name])
    task = attacked.send(Sending())["id"]
    asked = REST03.of_task["push set"]("echo", task)
    for parent in ({"$ref": "x"}, ["t"], 5):
        assert attacked.ask(asked._replace(body={**asked.body, "parent": parent})).status == 400
    deleted = attacked.of_task("push delete", task, dialect=RPC03)
    assert deleted.json == {"jsonrpc": "2.0", "id": 1, "result": None}
