"""One call under way at a peer: its message, what is told of it, its questions, its end."""

from __future__ import annotations

import logging
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

import anyio

from openfang.core.agents import Ended, Words
from openfang.core.errors import CallFailed, CallRefused, SourceFailed
from openfang.core.ids import new_id
from openfang.core.progress import Progress
from openfang.core.results import error_result, text_part, text_result
from openfang.core.tasks import Role, Sent, TaskMessage, TaskState
from openfang.core.values import dataclass
from openfang.protocols.a2a.extensions import CHAIN, HEADER
from openfang.sources.a2a.onward import metadata_of
from openfang.sources.a2a.questions import answer_in, form_of, question_call, shows_forms
from openfang.sources.a2a.results import question_of, result_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from openfang.core.calls import Admitted, Call
    from openfang.core.results import Part, Result
    from openfang.sources.a2a.client import Client
    from openfang.sources.a2a.following import Heard, PeerTask
    from openfang.sources.a2a.ledger import Ledger
    from openfang.sources.hops import Hop, Hops

_log = logging.getLogger("openfang.a2a")
_MOST_QUESTIONS: Final = 20
_GOODBYE: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What calls of peers are handed. `known` hears of each client before it is asked.

    `clean` takes secrets out of what a client is asked. `hops` tells the peer of the chain.
    `ledger` knows for whom a task was begun.
    """

    check: Callable[[Admitted], None]
    invoke: Callable[[Call], Awaitable[Result]]
    known: Callable[[str], None]
    clean: Callable[[dict[str, Any]], dict[str, Any]]
    hops: Hops
    ledger: Ledger


@dataclass(slots=True)
class Errand:
    """Makes one call. Whoever gives it up has the peer end its task.

    With a ledger a task or a conversation is for who began it: the peer knows the node alone.
    """

    peer: str
    client: Client
    admitted: Admitted
    around: Around
    ledger: Ledger | None = None
    _task: str = ""
    _context: str = ""
    _ours: bool = False
    _spoke: bool = False
    _state: TaskState | None = None
    _told: int = 0
    _hop: Hop = field(init=False)
    _headers: Mapping[str, str] = field(init=False)

    async def run(self) -> Result:
        """Send the message, or come back to a task, and wait for what becomes of it."""
        self._hop = self.around.hops.depart(self.admitted, self.client.url)
        self._headers = {HEADER: CHAIN, **self._hop.headers()}
        try:
            return await self._run()
        finally:
            self._hop.end()

    async def _run(self) -> Result:
        arguments = self.admitted.call.arguments
        self._task = str(arguments.get("task") or "")
        ends = bool(arguments.get("cancel"))
        if wrong := await self._wrong(arguments, ends=ends):
            return error_result(wrong)
        if ends:
            return await self._cancelled()
        name = str(arguments.get("context") or "")
        context = await self._abroad(name)
        try:
            task = await self._asked(await self._made(_parts(arguments), context))
        except anyio.get_cancelled_exc_class():
            await self._withdraw()
            raise
        finally:
            await self._noted()
        told = replace(task, context=name) if name and task.context == context else task
        return self._ended(self._hop.back(result_of(self.peer, told), task.metadata))

    async def _wrong(self, arguments: Mapping[str, Any], *, ends: bool) -> str:
        if ends and not self._task:
            return "There is nothing to end: give the task"
        if not (arguments.get("message") or arguments.get("parts") or self._task):
            return "There is nothing to send: give a message, or a task to go on with"
        if self._task and self.ledger is not None and not await self._may(self.ledger, ends=ends):
            return f"No task {self._task} of yours at {self.peer}"
        return ""

    async def _may(self, ledger: Ledger, *, ends: bool) -> bool:
        """Whether the task is the caller's; an administrator may end anybody's."""
        call, owner = self.admitted.call, await ledger.owner(self.peer, self._task)
        return owner == call.root or (ends and owner is not None and call.caller.admin)

    async def _abroad(self, name: str) -> str:
        root = self.admitted.call.root
        return name if self.ledger is None else await self.ledger.abroad(self.peer, root, name)

    async def _made(self, parts: tuple[Part, ...], context: str) -> PeerTask:
        if not parts:
            return await self.client.subscribe(self._task, self._hear, self._headers)
        return await self._sent(parts, context)

    async def _cancelled(self) -> Result:
        task = await self.client.cancel(self._task, self._headers)
        ended = {"task": self._task, "context": task.context, "state": task.state.value}
        return text_result(f"{self._task} is {task.state.value}", structured=ended)

    async def _noted(self) -> None:
        """Remember whose the task is, also of a call that failed: it may be come back to."""
        if self.ledger is not None and self._ours and self._task:
            with anyio.CancelScope(shield=True):
                root = self.admitted.call.root
                await self.ledger.begun(self.peer, root, self._task, self._context)

    async def _sent(self, parts: tuple[Part, ...], context: str) -> PeerTask:
        self._ours = True
        metadata = metadata_of(self.admitted.call, self._hop.words())
        message = TaskMessage(id=self._named(), role=Role.USER, parts=parts, metadata=metadata)
        sent = Sent(agent=self.peer, message=message, context=context, task=self._task)
        self._context = context
        task = await self.client.send(sent, self._hear, self._headers)
        self._context = task.context
        return task

    def _named(self) -> str:
        """Name a message: the first of a call that is made again as it was named before.

        Who knows it has a task for it already.
        """
        step = self.admitted.call.step
        return f"message_{step}" if step and not self._task else new_id("message")

    async def _asked(self, task: PeerTask) -> PeerTask:
        """Put the questions of a peer to the client, for as long as it answers."""
        for _ in range(_MOST_QUESTIONS):
            if task.state is not TaskState.INPUT_REQUIRED or not task.id:
                break
            answer = await self._answer(question_of(task))
            if answer is None:
                break
            self._task = task.id
            task = await self._sent((text_part(answer),), task.context)
        return task

    async def _answer(self, question: str) -> str | None:
        client = self.admitted.client
        if client is None or not shows_forms(client):
            return None
        self.around.known(client.key)
        form = self.around.clean(form_of(question or f"{self.peer} wants to know more."))
        try:
            with client.held():
                call = question_call(self.peer, self.admitted, client, form)
                return answer_in(await self.around.invoke(call))
        except (CallRefused, CallFailed) as error:
            _log.info("A question of %s was not answered: %s", self.peer, error.message)
            return None

    def _hear(self, heard: Heard) -> None:
        if heard.id and heard.id != self._task and self.ledger is not None and self._ours:
            root = self.admitted.call.root
            self.ledger.begins(self.peer, root, heard.id, self._context)
        self._task = heard.id or self._task
        listener, state = self.admitted.progress, self._state
        self._state = heard.state
        if listener is None:
            return
        if heard.words:
            self._spoke = True
            listener(Words(heard.words))
        if heard.said or heard.state is not state:
            self._told += 1
            listener(Progress(progress=self._told, message=heard.said or heard.state.value))

    def _ended(self, result: Result) -> Result:
        """Tell that the answer is whole: the last of its words may have been held back."""
        if self._spoke and self.admitted.progress is not None:
            self.admitted.progress(Ended(answer=result.text))
        return result

    async def _withdraw(self) -> None:
        """Let the peer end what nobody waits for any more, if it does so soon."""
        ended = self._state is not None and self._state.final
        if ended or not self._ours:
            return
        if not self._task:  # one of the first dialect names it when the work is done
            _log.warning("%s may go on with work that nobody waits for any more", self.peer)
            return
        with anyio.CancelScope(shield=True), anyio.move_on_after(_GOODBYE):
            try:
                await self.client.cancel(self._task, self._headers)
            except SourceFailed as failed:
                _log.info("%s did not end %s: %s", self.peer, self._task, failed.message)


def _parts(arguments: Mapping[str, Any]) -> tuple[Part, ...]:
    message, more = arguments.get("message"), arguments.get("parts") or ()
    return (*((text_part(str(message)),) if message else ()), *more)
