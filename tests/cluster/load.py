"""Callers who call whichever node is next, without end, and remember what they were told."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, Self

import httpx

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cluster.house import Cluster

TOOL = "mcp:effects:add_line"
_BETWEEN = 0.05
_A_WHILE = 60.0


@dataclass(slots=True)
class Told:
    """What callers were told. A `broken` answer is one that never came whole."""

    calls: set[str] = field(default_factory=set[str])
    tasks: dict[str, str] = field(default_factory=dict[str, str])
    streams: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    answers: Counter[str] = field(default_factory=Counter[str])
    slowest: float = 0.0
    lock: Lock = field(default_factory=Lock)

    def note(self, kind: str, seconds: float) -> None:
        with self.lock:
            self.answers[kind] += 1
            self.slowest = max(self.slowest, seconds)

    @property
    def well(self) -> int:
        """How many of each kind were answered as they should be, at least."""
        return min(len(self.calls), len(self.tasks))


@dataclass(slots=True)
class Load:
    """So many callers of each kind, until it is left."""

    cluster: Cluster
    told: Told = field(default_factory=Told)
    _stop: Event = field(default_factory=Event)
    _threads: list[Thread] = field(default_factory=list[Thread])
    _numbers: count[int] = field(default_factory=lambda: count(1))

    def __enter__(self) -> Self:
        ways = (self._call, self._call, self._task, self._stream)
        self._threads = [Thread(target=self._run, args=(way,)) for way in ways]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def until_answered(self, more: int) -> None:
        """Wait until so many more of each kind were answered well."""
        enough, ends = self.told.well + more, time.monotonic() + _A_WHILE
        while self.told.well < enough:
            assert time.monotonic() < ends, f"nobody is answered: {self.told.answers}"
            self._stop.wait(0.05)

    def _run(self, way: Callable[[httpx.Client, str], str]) -> None:
        with self.cluster.client as client:
            while not self._stop.wait(_BETWEEN):
                began, words = time.monotonic(), f"w{next(self._numbers)}"
                try:
                    kind = way(client, words)
                except httpx.HTTPError as error:
                    kind = type(error).__name__
                self.told.note(f"{way.__name__.strip('_')}: {kind}", time.monotonic() - began)

    def _call(self, client: httpx.Client, words: str) -> str:
        answer = client.post(f"/api/tools/{TOOL}/call", json={"arguments": {"text": words}})
        if answer.is_success and "added" in answer.text:
            self.told.calls.add(words)
            return "ok"
        return _reason(answer)

    def _task(self, client: httpx.Client, words: str) -> str:
        answer = client.post("/a2a/agents/courier", json=_rpc("message/send", words, waits=False))
        found: dict[str, Any] = answer.json() if answer.is_success else {}
        if "result" not in found:
            return _reason(answer)
        self.told.tasks[found["result"]["id"]] = words
        return "ok"

    def _stream(self, client: httpx.Client, words: str) -> str:
        """Watch a task to its end, over whichever node; who is cut off comes again."""
        with client.stream(
            "POST", "/a2a/agents/courier", json=_rpc("message/stream", words)
        ) as answer:
            task, state = self._heard(answer)
        while task and not _is_final(state) and not self._stop.is_set():
            again = {
                "jsonrpc": "2.0",
                "id": 2,
                "method": "tasks/resubscribe",
                "params": {"id": task},
            }
            with (
                suppress(httpx.HTTPError),
                client.stream("POST", "/a2a/agents/courier", json=again) as answer,
            ):
                state = self._heard(answer)[1] or self._state(client, task)
            self._stop.wait(_BETWEEN)
        return "ok" if task else "no task"

    def _heard(self, answer: httpx.Response) -> tuple[str, str]:
        task, state = "", ""
        with suppress(httpx.HTTPError):
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    found = json.loads(line[6:]).get("result", {})
                    task = task or found.get("taskId") or found.get("id", "")
                    state = found.get("status", {}).get("state", state)
                    with self.told.lock:
                        self.told.streams.setdefault(task, []).append(state)
        return task, state

    def _state(self, client: httpx.Client, task: str) -> str:
        body = {"jsonrpc": "2.0", "id": 3, "method": "tasks/get", "params": {"id": task}}
        found = client.post("/a2a/agents/courier", json=body).json()
        return found.get("result", {}).get("status", {}).get("state", "")


def _is_final(state: str) -> bool:
    return state in {"completed", "failed", "canceled", "rejected"}


def _reason(answer: httpx.Response) -> str:
    """What it says, without the names that are another every time."""
    said = re.search(r'"(?:text|message)":"([^"]*)', answer.text)
    words = re.sub(r"\w*\d\w*", "#", said[1] if said else answer.text)
    return f"{answer.status_code} {words[:100]}"


def _rpc(method: str, words: str, *, waits: bool = True) -> Any:
    message = {
        "kind": "message",
        "messageId": f"m-{words}",
        "role": "user",
        "parts": [{"kind": "text", "text": words}],
    }
    params = {"message": message, "configuration": {"blocking": waits}}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
