"""`openfang ext`: extensions, which bring tools."""

from __future__ import annotations

from openfang.app.installs.parcels import parcel_of
from openfang.cli.installs import AcceptFindings, Installs, Yes
from openfang.cli.options import Json

_EXTENSIONS = Installs("extension", "ext")


def install(path: str, /, *, as_json: Json = False) -> None:
    """Take an extension in, and show what it would be allowed to do. It is off until enabled.

    Nothing of it runs. Another version of one that is on waits beside it until it is accepted.

    Args:
        path: Its folder, or an archive of it: .tar, .tar.gz or .zip.
    """
    _EXTENSIONS.install(*parcel_of(path), as_json=as_json)


def check(path: str, /, *, as_json: Json = False) -> None:
    """Find every mistake of an extension's folder, and show what installing it would show.

    Args:
        path: Its folder, or an archive of it.
    """
    _EXTENSIONS.check(*parcel_of(path), as_json=as_json)


def list_extensions(*, as_json: Json = False) -> None:
    """List the extensions that are installed, and how each is."""
    _EXTENSIONS.list(as_json=as_json)


def show_extension(name: str, /, *, as_json: Json = False) -> None:
    """Show an extension: how it is, and all that enabling it would accept.

    Args:
        name: Its id.
    """
    _EXTENSIONS.show(name, as_json=as_json)


def enable(
    name: str,
    /,
    *,
    yes: Yes = False,
    accept_findings: AcceptFindings = False,
    as_json: Json = False,
) -> int:
    """Accept an extension as it is shown: its tools are offered at once, now and at every start.

    If its files change later, it is held back until it is accepted again.

    Args:
        name: Its id.
    """
    return _EXTENSIONS.enable(name, yes=yes, accept_findings=accept_findings, as_json=as_json)


def disable(name: str, /, *, as_json: Json = False) -> None:
    """Let an extension go: its tools are offered no longer; its files stay.

    Args:
        name: Its id.
    """
    _EXTENSIONS.change(name, "disable", as_json=as_json)


def remove(name: str, /, *, as_json: Json = False) -> None:
    """Delete an extension, with its files. What it kept in its workspace stays.

    Args:
        name: Its id.
    """
    _EXTENSIONS.change(name, "remove", as_json=as_json)
