"""One HTTP/1.1 answer, as httptools tells it. No I/O."""

from __future__ import annotations

from typing import Final

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

_FIRST_FINAL: Final = 200


class Answer:
    """One answer, fed piece by piece. Interim answers (1xx) are passed over."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.size = 0
        self.begun = self.complete = self.keep = False
        self._body: list[bytes] = []
        self._parser = HttpResponseParser(self)

    @property
    def announced(self) -> int:
        """How long the body is, by its own word."""
        return int(self.headers.get("content-length") or 0)

    @property
    def until_closed(self) -> bool:
        """Whether the body ends with the connection, and with nothing else."""
        return not {"content-length", "transfer-encoding"} & self.headers.keys()

    def feed(self, data: bytes) -> None:
        """Parse what came; what is not HTTP is a ValueError.

        What follows a whole answer spoils the connection, not the answer.
        """
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            if not self.complete:
                raise ValueError(str(error)) from error
            self.keep = False

    def take(self) -> bytes:
        """Hand over what has come of the body since."""
        body = b"".join(self._body)
        self._body.clear()
        return body

    def on_message_begin(self) -> None:
        """Hear that an answer begins, and perhaps one that nobody asked for."""
        self.keep = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; what comes behind the body is none."""
        if not self.begun:
            key, text = name.decode("latin-1").lower(), value.decode("latin-1").strip()
            self.headers[key] = f"{self.headers[key]}, {text}" if key in self.headers else text

    def on_headers_complete(self) -> None:
        """Begin, unless it is an interim answer."""
        if self.begun:
            return
        self.status = self._parser.get_status_code()
        self.begun = self.status >= _FIRST_FINAL
        if not self.begun:
            self.headers.clear()

    def on_body(self, body: bytes) -> None:
        """Keep a piece of the body."""
        if not self.complete:
            self._body.append(body)
            self.size += len(body)

    def on_message_complete(self) -> None:
        """Hear that the answer is whole."""
        if self.begun and not self.complete:
            self.complete, self.keep = True, self._parser.should_keep_alive()
