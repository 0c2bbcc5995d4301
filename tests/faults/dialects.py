"""Each operation on tasks in each dialect, as the request that it is, and how answers are read."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.faults.daemon import Answered

_NUMBERS = count(1)


class Asked(NamedTuple):
    """A request."""

    method: str
    path: str
    body: Any = None
    version: str = ""

    @property
    def headers(self) -> dict[str, str]:
        return {"A2A-Version": self.version} if self.version else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """A message that is to be sent."""

    text: str = "hi"
    agent: str = "echo"
    id: str = field(default_factory=lambda: f"m-{next(_NUMBERS)}")
    context: str = ""
    task: str = ""
    push: str = ""
    waits: bool = True

    def named(self, context: str, task: str) -> dict[str, str]:
        """The context and the task that it names, in the words of its dialect."""
        names = {context: self.context, task: self.task}
        return {name: value for name, value in names.items() if value}


@dataclass(frozen=True, slots=True)
class Dialect:
    """One way to speak of tasks: its operations, and how its answers are read."""

    name: str
    send: Callable[[Sending], Asked]
    of_task: Mapping[str, Callable[[str, str], Asked]]
    stream: Callable[[Sending], Asked] | None = None
    listed: Callable[[str, str], Asked] | None = None
    in_envelope: bool = True

    def code(self, answer: Answered) -> int:
        """What it says of how it went: 0 if that is well, else the dialect's own number."""
        if not self.in_envelope or answer.status != 200:
            return 0 if answer.status == 200 else answer.status
        body = json.loads(answer.body.removeprefix(b"data: "))  # a stream of one event, or none
        return body["error"]["code"] if "error" in body else 0

    def task(self, answer: Answered) -> dict[str, Any]:
        """The task that it must be."""
        assert self.code(answer) == 0, answer
        found = answer.json["result"] if self.in_envelope else answer.json
        return found.get("task", found)

    def state(self, answer: Answered) -> str:
        """How far the task has got, in the words of the seed."""
        return state_of(self.task(answer))


def state_of(task: Mapping[str, Any]) -> str:
    """How far a task has got, in one word for all dialects."""
    status: Any = task["status"]
    word = status if isinstance(status, str) else status["state"]
    word = word.removeprefix("TASK_STATE_").lower().replace("_", "-")
    return {"cancelled": "canceled", "inputrequired": "input-required"}.get(word, word)


def _rpc(method: str, params: Any, path: str = "/a2a", version: str = "") -> Asked:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return Asked("POST", path, body, version)


def _at(agent: str) -> str:
    return f"/a2a/agents/{agent}"


def _seed(sending: Sending) -> dict[str, Any]:
    said = {"role": "user", "parts": [{"type": "text", "text": sending.text}]}
    return {
        "message": said,
        "metadata": {"agent": sending.agent},
        **sending.named("sessionId", "id"),
    }


def _message03(sending: Sending) -> dict[str, Any]:
    return {
        "kind": "message",
        "messageId": sending.id,
        "role": "user",
        "parts": [{"kind": "text", "text": sending.text}],
        **sending.named("contextId", "taskId"),
    }


def _send03(sending: Sending) -> dict[str, Any]:
    configuration: dict[str, Any] = {"blocking": sending.waits}
    if sending.push:
        configuration["pushNotificationConfig"] = {"url": sending.push}
    return {"message": _message03(sending), "configuration": configuration}


def _rest03(sending: Sending) -> dict[str, Any]:
    said = {
        "messageId": sending.id,
        "role": "ROLE_USER",
        "content": [{"text": sending.text}],
        **sending.named("contextId", "taskId"),
    }
    return {"message": said, "configuration": {"blocking": sending.waits}}


def _send1(sending: Sending) -> dict[str, Any]:
    said = {
        "messageId": sending.id,
        "role": "ROLE_USER",
        "parts": [{"text": sending.text}],
        **sending.named("contextId", "taskId"),
    }
    configuration: dict[str, Any] = {"returnImmediately": not sending.waits}
    if sending.push:
        configuration["taskPushNotificationConfig"] = {"url": sending.push}
    return {"message": said, "configuration": configuration}


def _rpc03(method: str, *more: str) -> Callable[[str, str], Asked]:
    def ask(agent: str, task: str) -> Asked:
        params = {"id": task, **({"pushNotificationConfigId": more[0]} if more else {})}
        return _rpc(method, params, _at(agent))

    return ask


def _rpc1(method: str, **more: str) -> Callable[[str, str], Asked]:
    name = "taskId" if "Push" in method else "id"
    return lambda agent, task: _rpc(method, {name: task, **more}, _at(agent), "1.0")


def _rest(method: str, path: str, body: Any = None, version: str = "1.0") -> Any:
    def ask(agent: str, task: str) -> Asked:
        where = path.format(task=task)
        return Asked(method, f"{_at(agent)}/rest{where}", body, version)

    return ask


TARGET = "http://127.0.0.1:9/told"
_PUSHES = "/tasks/{task}/pushNotificationConfigs"
_PUSH03 = {"id": "p", "url": TARGET}
_PUSH03_REST = {"config": {"pushNotificationConfig": _PUSH03}}

SEED = Dialect(
    "seed",
    lambda sending: Asked("POST", "/a2a/tasks/send", _rpc("tasks/send", _seed(sending)).body),
    {
        "get": lambda _, task: Asked("GET", f"/a2a/tasks/{task}"),
        "history": lambda _, task: Asked("GET", f"/a2a/tasks/{task}/history"),
        "cancel": lambda _, task: Asked("POST", f"/a2a/tasks/{task}/cancel"),
    },
    in_envelope=False,
)
SEED_RPC = Dialect(
    "seed-rpc",
    lambda sending: _rpc("tasks/send", _seed(sending)),
    {
        "get": lambda _, task: _rpc("tasks/get", {"id": task}),
        "subscribe": lambda _, task: _rpc("tasks/resubscribe", {"id": task}),
        "cancel": lambda _, task: _rpc("tasks/cancel", {"id": task}),
    },
    stream=lambda sending: _rpc("tasks/sendSubscribe", _seed(sending)),
)
RPC03 = Dialect(
    "0.3",
    lambda sending: _rpc("message/send", _send03(sending), _at(sending.agent)),
    {
        "get": _rpc03("tasks/get"),
        "subscribe": _rpc03("tasks/resubscribe"),
        "push set": lambda agent, task: _rpc(
            "tasks/pushNotificationConfig/set",
            {"taskId": task, "pushNotificationConfig": _PUSH03},
            _at(agent),
        ),
        "push get": _rpc03("tasks/pushNotificationConfig/get"),
        "push list": _rpc03("tasks/pushNotificationConfig/list"),
        "push delete": _rpc03("tasks/pushNotificationConfig/delete", "p"),
        "cancel": _rpc03("tasks/cancel"),
    },
    stream=lambda sending: _rpc("message/stream", _send03(sending), _at(sending.agent)),
)
RPC1 = Dialect(
    "1.0",
    lambda sending: _rpc("SendMessage", _send1(sending), _at(sending.agent), "1.0"),
    {
        "get": _rpc1("GetTask"),
        "subscribe": _rpc1("SubscribeToTask"),
        "push set": _rpc1("CreateTaskPushNotificationConfig", id="p", url=TARGET),
        "push get": _rpc1("GetTaskPushNotificationConfig", id="p"),
        "push list": _rpc1("ListTaskPushNotificationConfigs"),
        "push delete": _rpc1("DeleteTaskPushNotificationConfig", id="p"),
        "cancel": _rpc1("CancelTask"),
    },
    stream=lambda sending: _rpc("SendStreamingMessage", _send1(sending), _at(sending.agent), "1.0"),
    listed=lambda agent, context: _rpc(
        "ListTasks", {"contextId": context} if context else {}, _at(agent), "1.0"
    ),
)
REST03 = Dialect(
    "0.3 rest",
    lambda sending: _rest("POST", "/v1/message:send", _rest03(sending), "")(sending.agent, ""),
    {
        "get": _rest("GET", "/v1/tasks/{task}", version=""),
        "subscribe": _rest("GET", "/v1/tasks/{task}:subscribe", version=""),
        "push set": _rest("POST", f"/v1{_PUSHES}", _PUSH03_REST, ""),
        "push get": _rest("GET", f"/v1{_PUSHES}/p", version=""),
        "push list": _rest("GET", f"/v1{_PUSHES}", version=""),
        "push delete": _rest("DELETE", f"/v1{_PUSHES}/p", version=""),
        "cancel": _rest("POST", "/v1/tasks/{task}:cancel", {}, ""),
    },
    stream=lambda sending: _rest("POST", "/v1/message:stream", _rest03(sending), "")(
        sending.agent, ""
    ),
    in_envelope=False,
)
REST1 = Dialect(
    "1.0 rest",
    lambda sending: _rest("POST", "/message:send", _send1(sending))(sending.agent, ""),
    {
        "get": _rest("GET", "/tasks/{task}"),
        "subscribe": _rest("POST", "/tasks/{task}:subscribe"),
        "push set": _rest("POST", _PUSHES, {"id": "p", "url": TARGET}),
        "push get": _rest("GET", f"{_PUSHES}/p"),
        "push list": _rest("GET", _PUSHES),
        "push delete": _rest("DELETE", f"{_PUSHES}/p"),
        "cancel": _rest("POST", "/tasks/{task}:cancel", {}),
    },
    stream=lambda sending: _rest("POST", "/message:stream", _send1(sending))(sending.agent, ""),
    listed=lambda agent, context: _rest(
        "GET", f"/tasks?contextId={context}" if context else "/tasks"
    )(agent, ""),
    in_envelope=False,
)
DIALECTS = (SEED, SEED_RPC, RPC03, RPC1, REST03, REST1)
