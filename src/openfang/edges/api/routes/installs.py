"""What can be asked of one kind of installs: the same of each."""

from __future__ import annotations

from base64 import b64decode
from functools import partial
from typing import TYPE_CHECKING, Any

from openfang.core.errors import Rejected
from openfang.core.values import dataclass
from openfang.edges.api import schemas
from openfang.edges.api.endpoint import Access, Endpoint
from openfang.edges.api.exchange import MAX_BODY, json_answer
from openfang.edges.api.installs import ENABLE, NEW

if TYPE_CHECKING:
    from openfang.core.installs import InstallKind
    from openfang.edges.api.exchange import Answer, Asked


@dataclass(frozen=True, slots=True)
class _Installs:
    kind: InstallKind

    async def list(self, asked: Asked) -> Answer:
        found = await asked.session.installs(self.kind)
        return json_answer({f"{self.kind}s": list(found), "total": len(found)})

    async def show(self, asked: Asked) -> Answer:
        return json_answer(await asked.session.installed(self.kind, asked.path["id"]))

    async def add(self, asked: Asked) -> Answer:
        body = asked.body
        preview = body.get("preview", False)
        made = await asked.session.install(
            self.kind,
            _archive(body["archive_base64"]),
            body.get("origin", "an upload"),
            preview=preview,
        )
        return json_answer(made, 200 if preview else 201)

    async def change(self, act: str, asked: Asked) -> Answer:
        shown: dict[str, Any] = asked.body if act == "enable" else {}
        changed = await asked.session.change_install(
            self.kind,
            asked.path["id"],
            act,
            digest=shown.get("digest", ""),
            accept_findings=shown.get("accept_findings", False),
        )
        return json_answer(changed)


def _archive(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise Rejected(
            "archive_base64 is no base64.", status=422, rule="body", way_out="base64 of the archive"
        ) from None


def endpoints_of(kind: InstallKind, path: str, page: str) -> tuple[Endpoint, ...]:
    """List the endpoints for one kind."""
    served, one = _Installs(kind), f"{path}/{{id}}"
    return (
        Endpoint(
            method="GET",
            path=path,
            name=f"list_{kind}s",
            summary=f"The {kind}s that are installed, and how each is.",
            handle=served.list,
            access=Access.AUDITOR,
            answers={200: page},
            problems=(403,),
        ),
        Endpoint(
            method="POST",
            path=path,
            name=f"install_{kind}",
            summary="Take an archive in: it is looked at, and off until it is enabled.",
            handle=served.add,
            access=Access.ADMIN,
            work="call",
            body=NEW,
            largest=MAX_BODY,
            answers={200: "Install", 201: "Install"},
            problems=(403, 409, 422),
        ),
        Endpoint(
            method="GET",
            path=one,
            name=f"show_{kind}",
            summary=f"Everything that is known of one {kind}, and what it would be allowed to do.",
            handle=served.show,
            access=Access.AUDITOR,
            answers={200: "Install"},
            problems=(403, 404),
        ),
        Endpoint(
            method="DELETE",
            path=one,
            name=f"remove_{kind}",
            summary="Delete one, with its files.",
            handle=partial(served.change, "remove"),
            access=Access.ADMIN,
            answers={200: "Install"},
            problems=(403, 404, 409),
        ),
        Endpoint(
            method="POST",
            path=f"{one}/enable",
            name=f"enable_{kind}",
            summary="Accept one as it was shown, by its digest: it is in force at once.",
            handle=partial(served.change, "enable"),
            access=Access.ADMIN,
            body=ENABLE,
            answers={200: "Install"},
            problems=(403, 404, 409, 422),
        ),
        Endpoint(
            method="POST",
            path=f"{one}/disable",
            name=f"disable_{kind}",
            summary="Let one go; its files stay.",
            handle=partial(served.change, "disable"),
            access=Access.ADMIN,
            body=schemas.NOTHING,
            answers={200: "Install"},
            problems=(403, 404, 409, 422),
        ),
    )
