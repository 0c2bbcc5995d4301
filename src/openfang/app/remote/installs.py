"""Extensions and skills of a daemon, as its client asks for them."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

from openfang.app.remote.addresses import INSTALLS, install_path
from openfang.app.remote.objects import an_object

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.app.remote.asking import Asking
    from openfang.core.installs import InstallKind


class RemoteInstalls:
    """What is installed on the node."""

    __slots__ = ()
    daemon: Asking

    async def installs(self, kind: InstallKind) -> Sequence[Mapping[str, Any]]:
        """List what is installed, by id, and how each is."""
        return await self.daemon.get(INSTALLS[kind], lambda body: list(body[f"{kind}s"]))

    async def installed(self, kind: InstallKind, install_id: str) -> Mapping[str, Any]:
        """Show one, with all that a person decides by."""
        return await self.daemon.get(install_path(kind, install_id), an_object)

    async def install(
        self, kind: InstallKind, parcel: bytes, origin: str, *, preview: bool = False
    ) -> Mapping[str, Any]:
        """Take an archive in, off; with `preview`, only say what would be taken in."""
        archive = b64encode(parcel).decode()
        wanted = {"archive_base64": archive, "origin": origin, "preview": preview}
        return await self.daemon.act("POST", INSTALLS[kind], an_object, wanted)

    async def change_install(
        self,
        kind: InstallKind,
        install_id: str,
        act: str,
        *,
        digest: str = "",
        accept_findings: bool = False,
    ) -> Mapping[str, Any]:
        """Enable one as it was shown, by its digest; disable or remove it."""
        path = install_path(kind, install_id)
        if act == "remove":
            return await self.daemon.act("DELETE", path, an_object)
        shown = {"digest": digest, "accept_findings": accept_findings}
        return await self.daemon.act(
            "POST", f"{path}/{act}", an_object, shown if act == "enable" else {}
        )
