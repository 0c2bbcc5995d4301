"""Numbers go to a peer and come back as they are, in every version and binding."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from aiohttp import web
from tests.sources.a2a.sdk_peer import card_of
from tests.sources.a2a.speaking import speaking
from tests.sources.a2a.web_peers import answering, own_url, scripted, serving, streaming

from openfang.core.errors import SourceFailed
from openfang.core.tasks import Role, Sent, TaskMessage, TaskState
from openfang.sources.a2a.aside import Aside

if TYPE_CHECKING:
    from openfang.sources.a2a.client import Client

pytestmark = pytest.mark.requirement("C5.8")

KINDS = ["JSONRPC 1.0", "HTTP+JSON 1.0", "JSONRPC 0.3", "HTTP+JSON 0.3"]
ODD: dict[str, Any] = {"k": 1, "not": 1.0, "id": 2**53 + 1, "in": [1, {"a": 2**64 - 1}], "no": None}
METADATA: dict[str, Any] = {"n": 5, "of": [1.0, {"id": -(2**53) - 1}], "line": "a\u2028b"}
DATA: list[Any] = [ODD, [1, 2.0], {"value": 1}, {"data": {"value": 3}}, 2**53 + 1, 0, 1.0, "x", {}]


@dataclass
class Parrot:
    """Says again what it hears, part by part: as an artifact, and with its last state."""

    kind: str
    streams: bool
    heard: list[Any] = field(default_factory=list[Any])

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/.well-known/agent-card.json":
            return web.json_response(card_of(own_url(request), self.kind, streaming=self.streams))
        body = json.loads(await request.text() or "{}")
        if not request.path.endswith("rpc"):
            sends = "message:" in request.path
            self.heard += [body] if sends else []
            return await self._answer(request, streamed=":stream" in request.path, sends=sends)
        sends = body["method"].lower().startswith(("message/", "send"))
        self.heard += [body["params"]] if sends else []
        return await self._answer(request, streamed="tream" in body["method"], sends=sends)

    async def _answer(
        self, request: web.BaseRequest, *, streamed: bool, sends: bool
    ) -> web.StreamResponse:
        if not streamed:
            named = sends and self.kind != "JSONRPC 0.3"
            return web.json_response(self._enveloped({"task": self.task} if named else self.task))
        response = await streaming(request)
        told = [self._enveloped(one) for one in self._story()]
        lines = "".join(f"event: message\r\ndata: {json.dumps(one)}\r\n\r\n" for one in told[1:])
        split = json.dumps(told[0], indent=1).replace("\n", "\ndata: ")
        await response.write(f": hello\n\ndata: {split}\n\n{lines}".encode())
        return response

    def _enveloped(self, said: Any) -> Any:
        return said if "HTTP" in self.kind else {"jsonrpc": "2.0", "id": "1", "result": said}

    @property
    def task(self) -> dict[str, Any]:
        made = {"status": self._status("completed", self._said), "artifacts": [self._artifact]}
        return {"id": "t-1", "contextId": "c-1", **self._kind("task"), **made}

    def _story(self) -> list[dict[str, Any]]:
        about = {"taskId": "t-1", "contextId": "c-1"}
        begun = {"id": "t-1", "contextId": "c-1", "status": self._status("working")}
        status = {**about, "status": self._status("completed", self._said), "final": True}
        if "1.0" in self.kind:
            del status["final"]
        artifact = {**about, "artifact": self._artifact}
        if self.kind != "JSONRPC 0.3":
            return [{"task": begun}, {"artifactUpdate": artifact}, {"statusUpdate": status}]
        return [
            {**self._kind("task"), **begun},
            {**self._kind("artifact-update"), **artifact},
            {**self._kind("status-update"), **status},
        ]

    def _kind(self, kind: str) -> dict[str, Any]:
        return {"kind": kind} if self.kind == "JSONRPC 0.3" else {}

    def _status(self, word: str, said: dict[str, Any] | None = None) -> dict[str, Any]:
        state = word if self.kind == "JSONRPC 0.3" else f"TASK_STATE_{word.upper()}"
        return {"state": state, **({"message": said} if said else {})}

    @property
    def _parts(self) -> list[Any]:
        told = self.heard[-1]
        message = told.get("message") or told["request"]
        return message.get("parts") or message["content"]

    @property
    def _said(self) -> dict[str, Any]:
        role = "agent" if self.kind == "JSONRPC 0.3" else "ROLE_AGENT"
        parts = "content" if self.kind == "HTTP+JSON 0.3" else "parts"
        said = {"messageId": "m-2", "role": role, parts: self._parts, "metadata": METADATA}
        return {**self._kind("message"), **said}

    @property
    def _artifact(self) -> dict[str, Any]:
        return {"artifactId": "a-1", "name": "a", "parts": self._parts, "metadata": METADATA}


async def exchanged(client: Client) -> tuple[Any, Any]:
    """What a peer answers to data of all sorts, and what it tells of the task when asked again."""
    parts = tuple({"type": "data", "data": one, "metadata": METADATA} for one in DATA)
    message = TaskMessage(id="m-1", role=Role.USER, parts=parts, metadata=METADATA)
    task = await client.send(Sent(agent="peer", message=message, metadata=METADATA))
    return task, await client.get(task.id)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("streams", [True, False])
async def test_a_number_reaches_a_peer_and_comes_back_as_it_is(kind: str, *, streams: bool) -> None:
    parrot = Parrot(kind, streams)
    with anyio.fail_after(30):
        async with serving(parrot) as url, speaking(url) as client:
            task, again = await exchanged(client)
    (heard,) = parrot.heard
    assert all(repr(one) in repr(heard) for one in (*DATA, METADATA))
    assert repr(heard).count(repr(METADATA)[1:-1]) == len(DATA) + 2
    parts = tuple({"type": "data", "data": one, "metadata": METADATA} for one in DATA)
    for told in (task, again):
        assert told.state is TaskState.COMPLETED
        for held in (told.artifacts[0], told.status):
            assert (repr(held.parts), repr(held.metadata)) == (repr(parts), repr(METADATA))


async def test_an_answer_that_is_too_deep_is_none() -> None:
    deep = json.dumps({"result": {"task": {"metadata": {"a": 1}}}}).replace(
        "1", "[" * 150 + "]" * 150
    )
    peer = scripted(answering(text=deep, content_type="application/json"))
    with anyio.fail_after(30):
        async with serving(peer) as url, speaking(url) as client:
            with pytest.raises(SourceFailed, match="deeper"):
                await client.get("t-1")


@pytest.mark.parametrize(
    "text",
    [
        b'[{"data": 1}]',
        b'{"error": {"data": [{"metadata": {"a": 1}}]}}',
        b'data: {"data": no\ndata: JSON}\n\n',
        b': "data"\n\nevent: error\ndata: {"text": "x"}\n\n',
    ],
)
def test_what_has_nothing_of_an_agents_in_it_stays_as_it_is(text: bytes) -> None:
    assert Aside().heard(text) == text
