"""One connection: whose turn it is, for how long, and how it ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, cast

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT

from openfang.host.exchange import LOG, Exchange
from openfang.host.heads import (
    BODY,
    DEAF,
    HEAD,
    HEAD_BYTES,
    IDLE,
    LEAVING,
    HeadReader,
    Phase,
    refusal_of,
)
from openfang.host.refusals import (
    HEAD_TOO_LARGE,
    INTERNAL,
    OVERLOADED,
    REQUEST_TIMEOUT,
    STOPPING,
    Refusal,
    Refused,
    malformed,
)

if TYPE_CHECKING:
    from uvicorn.config import Config

    from openfang.host.crowd import Crowd

_QUEUED: Final = 16


class Connection(HeadReader):
    """A client, from when it connects until it is gone.

    `cycle` is the newest exchange, `current` the one that is being answered; between them stand
    requests that the client sent without waiting.
    """

    __slots__ = (
        "crowd",
        "current",
        "fed_at_body",
        "is_closing",
        "served",
        "since",
        "surplus",
        "unsent",
        "unsent_since",
        "write",
    )

    def __init__(self, config: Config, crowd: Crowd, app_state: dict[str, Any]) -> None:
        super().__init__(config, crowd, app_state)
        self.logger = LOG
        self.crowd = crowd
        self.current: Exchange | None = None
        self.since = crowd.beat
        self.served = False
        self.surplus = False
        self.fed_at_body = 0
        self.unsent = 0
        self.unsent_since = 0

    # What an exchange takes for its transport: `write` and `is_closing` are the transport's own.

    def close(self) -> None:
        """End the connection so that the client can read the last answer.

        To close a socket with unread data in it is a reset, which may overtake the answer. So we
        only stop writing, and wait for the client to hang up.
        """
        if self.phase is LEAVING:
            return
        unread = self.surplus or self.flow.read_paused or self.phase in {HEAD, BODY}
        self.phase = LEAVING
        self.since = self.crowd.beat
        self.crowd.leave(self)
        if unread and not self.transport.is_closing():
            self.flow.resume_reading()
            self.transport.write_eof()
        else:
            self.transport.close()

    # The transport's calls

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a place, or say that there is none."""
        super().connection_made(transport)
        self.write = transport.write
        self.is_closing = transport.is_closing
        refusal = self.crowd.arrive(self)
        if self.client is None:
            transport.abort()
        elif refusal is not None:
            # Its request may be on the way.
            self.surplus = True
            self.refuse(refusal)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the app that nobody listens."""
        self.phase = LEAVING
        self.crowd.gone(self)
        self.pipeline.clear()
        if self.current is not None and not self.current.response_complete:
            self.current.disconnected = True
            self.current.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, as far as anybody may send."""
        phase = self.phase
        if phase is IDLE:
            self.begin_head()
        elif phase is DEAF or phase is LEAVING:
            self.surplus = True
            return
        self.fed += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.refuse(self._refusal(error))
        else:
            if self.fed > HEAD_BYTES:
                self._check_size()

    def resume_writing(self) -> None:
        """Count it as progress: the client has read everything."""
        self.unsent = 0
        super().resume_writing()

    # The parser's calls; those of the head are in `HeadReader`

    def on_headers_complete(self) -> None:
        """Begin an exchange, now or when it is its turn."""
        version = self.complete_head()
        if len(self.pipeline) >= _QUEUED:
            raise Refused(OVERLOADED)
        self.phase = BODY
        self.fed = self.fed_at_body = 0
        exchange = self.cycle = self._exchange(version)
        if self.current is None or self.current.response_complete:
            self._begin(exchange)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((exchange, self.app))

    def on_body(self, body: bytes) -> None:
        """Hand the app what arrives, and stop reading when it has more than it takes."""
        self.fed_at_body = self.fed
        exchange = self.cycle
        if exchange.response_complete:
            return
        exchange.body += body
        if len(exchange.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        exchange.message_event.set()

    def on_message_complete(self) -> None:
        """From here on it is our turn."""
        exchange = self.cycle
        self.phase = IDLE
        if exchange.response_complete:
            self.since = self.crowd.beat
            return
        exchange.more_body = False
        exchange.message_event.set()
        if exchange is self.current:
            self.crowd.waiting.pop(self, None)

    # The exchange's call

    def on_response_complete(self) -> None:
        """Take up the next request, or wait for it."""
        if self.phase is LEAVING:
            return
        self.since = self.crowd.beat
        self.flow.resume_reading()
        if self.pipeline:
            exchange = cast("Exchange", self.pipeline.pop()[0])
            self._begin(exchange)
            if not exchange.more_body:
                return
        self.crowd.waiting[self] = None

    # The server's calls

    def on_beat(self) -> None:
        """Look whether the client has taken too long."""
        crowd = self.crowd
        if self._is_sending():
            self.since = crowd.beat
        elif self.phase is LEAVING:
            if crowd.beat - self.since > crowd.linger:
                self.transport.abort()
        elif self in crowd.waiting:
            self._watch()

    def evict(self) -> None:
        """Make room for somebody else."""
        if self.phase is IDLE or (self.phase is BODY and self.cycle.response_complete):
            self.close()
        else:
            self.refuse(OVERLOADED)

    def shutdown(self) -> None:
        """Answer what has been asked, and nothing after that."""
        if self.phase is LEAVING:
            if not self.transport.get_write_buffer_size():
                self.transport.abort()
        elif self.current is None or self.current.response_complete:
            if self.phase is HEAD:
                self.refuse(STOPPING)
            else:
                self.close()
        else:
            self._end_after_answers()

    def refuse(self, refusal: Refusal) -> None:
        """Answer what is being read, unless an earlier answer is owed: then that is the last."""
        exchange = self.current
        if exchange is None or exchange.response_complete:
            if self.phase is not BODY:
                self.write(refusal.answer(self.crowd.default_headers))
            self.close()
        elif exchange.more_body:
            self._cut(exchange, refusal)
        else:
            if self.pipeline and self.pipeline[0][0].more_body:
                self.pipeline.popleft()
            # Nobody will read to the end of what is being read.
            self.phase = HEAD
            self._end_after_answers()

    def _cut(self, exchange: Exchange, refusal: Refusal) -> None:
        exchange.disconnected = True
        exchange.waiting_for_100_continue = False
        if exchange.response_started:
            exchange.message_event.set()
            self.close()
        else:
            exchange.refuse(refusal)

    def _end_after_answers(self) -> None:
        last = self.pipeline[0][0] if self.pipeline else self.current
        if last is not None:
            last.keep_alive = False
        if self.phase is not BODY:
            self.surplus |= self.phase is HEAD
            self.phase = DEAF

    def begin_head(self, *, midway: bool = False) -> None:
        """Count from the first byte; the first request counts from the connection's beginning."""
        super().begin_head(midway=midway)
        if self.served:
            self.since = self.crowd.beat

    def _begin(self, exchange: Exchange) -> None:
        self.current = exchange
        self.served = True
        run = exchange.run_asgi(self.app)
        task = self.loop.create_task(run, context=self.crowd.context.copy())
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def _refusal(self, error: httptools.HttpParserError) -> Refusal:
        refusal = refusal_of(error)
        if refusal is None:
            LOG.error("A request could not be read", exc_info=error.__context__)
        return refusal or INTERNAL

    def _check_size(self) -> None:
        if self.phase is HEAD:
            self.refuse(HEAD_TOO_LARGE)
        elif self.phase is BODY and self.fed - self.fed_at_body > HEAD_BYTES:
            self.refuse(malformed("Chunk extensions or trailers of more than 65536 bytes"))

    def _exchange(self, version: str) -> Exchange:
        return Exchange(
            scope=self.scope,
            transport=cast("asyncio.Transport", self),
            flow=self.flow,
            logger=LOG,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.crowd.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            # Whoever asks first may keep the body to itself after a refusal: then what follows
            # would be read as that body.
            keep_alive=version == "1.1"
            and not self.expect_100_continue
            and self.parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )

    def _is_sending(self) -> bool:
        """Whether the client has yet to read an answer; if it stopped doing so, end it."""
        size = self.transport.get_write_buffer_size()
        busy = self.phase is not LEAVING and self not in self.crowd.waiting
        if not size or (busy and not self.flow.write_paused):
            self.unsent = 0
            return False
        if not self.unsent or size < self.unsent:
            self.unsent = size
            self.unsent_since = self.crowd.beat
        elif self.crowd.beat - self.unsent_since > self.crowd.body:
            self.transport.abort()
        return True

    def _watch(self) -> None:
        crowd = self.crowd
        if self.phase is BODY and self._is_held_up():
            self.since += 1
        elif crowd.beat - self.since > self._patience():
            self._lose_patience()

    def _is_held_up(self) -> bool:
        """Whether it is the app that does not read on."""
        return self.flow.read_paused or self.cycle.waiting_for_100_continue

    def _patience(self) -> int:
        crowd = self.crowd
        match self.phase:
            case Phase.HEAD:
                return crowd.head
            case Phase.BODY if self.cycle.response_complete:
                return crowd.linger
            case Phase.BODY:
                return crowd.body + self.fed // crowd.bytes_per_beat
            case _:
                return crowd.idle if self.served else crowd.head

    def _lose_patience(self) -> None:
        if self.phase is IDLE:
            self.close()
        else:
            self.refuse(REQUEST_TIMEOUT)
