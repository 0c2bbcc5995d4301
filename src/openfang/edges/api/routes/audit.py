"""`/api/audit`: read, export, query and prove the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from openfang.core.bookmarks import START, read_bookmark
from openfang.core.log import Search
from openfang.core.wire import proof_body, verification_body
from openfang.edges.api import schemas
from openfang.edges.api.endpoint import Access, Endpoint, Text
from openfang.edges.api.exchange import Answer, Stream, json_answer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping

    from openfang.core.bookmarks import Bookmark
    from openfang.core.session import Session
    from openfang.edges.api.exchange import Asked

_PIECE = 65_536


async def _search(asked: Asked) -> Answer:
    end = await asked.session.heads()
    named = {name: value for name, value in asked.query.items() if name != "after"}
    found = await asked.session.search(Search(**named, after=_after(asked)))
    bodies = [event.as_json() for event in found]
    return json_answer({"records": bodies, "total": len(bodies), "end": str(end)})


async def _export(asked: Asked) -> Stream:
    session, after = asked.session, _after(asked)
    proven = asked.query.get("proven", False)
    pieces = _lines(session.export(after) if proven else _records(session, after))
    return Stream(pieces=pieces, content_type=b"application/x-ndjson")


def _after(asked: Asked) -> Bookmark:
    return read_bookmark(asked.query.get("after", "0")) or START


async def _records(session: Session, after: Bookmark) -> AsyncGenerator[Mapping[str, Any]]:
    async for event in session.after(after):
        yield event.as_json()


async def _lines(bodies: AsyncIterator[Mapping[str, Any]]) -> AsyncGenerator[bytes]:
    piece = bytearray()
    async for body in bodies:
        piece += orjson.dumps(body, default=str, option=orjson.OPT_APPEND_NEWLINE)
        if len(piece) >= _PIECE:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)


async def _verify(asked: Asked) -> Answer:
    return json_answer(verification_body(await asked.session.verify()))


async def _prove(asked: Asked) -> Answer:
    found = await asked.session.prove(asked.body["record"], asked.body["hash"])
    return json_answer(proof_body(found))


async def _sql(asked: Asked) -> Answer:
    found = await asked.session.sql(asked.body["query"])
    tables = [{"columns": names, "rows": [list(row) for row in rows]} for names, rows in found]
    return json_answer({"tables": tables})


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/audit",
        name="search_audit",
        summary="Find records; every condition given must hold.",
        handle=_search,
        access=Access.AUDITOR,
        query=schemas.SEARCH_QUERY,
        answers={200: "Records"},
        problems=(403, 422),
    ),
    Endpoint(
        method="GET",
        path="/api/audit/export",
        name="export_audit",
        summary="Read every record after a number, as lines of JSON; `proven` with its proof.",
        handle=_export,
        access=Access.AUDITOR,
        work="message",
        query=schemas.EXPORT_QUERY,
        answers={200: Text("application/x-ndjson")},
        problems=(403,),
    ),
    Endpoint(
        method="GET",
        path="/api/audit/verify",
        name="verify_audit",
        summary="Check the whole log against its hashes and its signed checkpoints.",
        handle=_verify,
        access=Access.AUDITOR,
        work="message",
        answers={200: "Verification"},
        problems=(403,),
    ),
    Endpoint(
        method="POST",
        path="/api/audit/prove",
        name="prove_record",
        summary="Say whether the log has the record of a receipt.",
        handle=_prove,
        awaited=True,
        body=schemas.PROVE,
        answers={200: "Proof"},
        problems=(422,),
    ),
    Endpoint(
        method="POST",
        path="/api/audit/sql",
        name="query_audit",
        summary="Run queries that only read.",
        handle=_sql,
        awaited=True,
        access=Access.AUDITOR,
        work="message",
        body=schemas.QUERY,
        answers={200: "Tables"},
        problems=(403, 422),
    ),
)
