"""How requests to providers go out: by our one way, with the key put in at the last moment.

The libraries never hold a key, so none can show up in what they raise, log or send elsewhere; of
the headers that they set, those go out that belong to the format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from openfang.core.values import dataclass
from openfang.host.http import HttpClient, Request
from openfang.safety.urls import parse_target

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractAsyncContextManager

    from openfang.agents.models.providers import Endpoint
    from openfang.host.http import Streaming

_KEPT: Final = frozenset({"accept", "content-type", "anthropic-version", "anthropic-beta"})


@dataclass(frozen=True, slots=True)
class Wire:
    """The way to one provider: to its address, and nowhere else."""

    http: HttpClient
    endpoint: Endpoint

    def open(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> AbstractAsyncContextManager[Streaming]:
        """Make a request."""
        target = parse_target(self.endpoint.base_url)
        host = f"[{target.host}]" if ":" in target.host else target.host
        kept = {name: value for name, value in headers.items() if name.lower() in _KEPT}
        request = Request(
            url=url,
            allow_hosts=(f"{host}:{target.port}",),
            method=method,
            headers={**kept, **_key(self.endpoint)},
            body=body,
            allow_private=self.endpoint.allow_private,
            follow=False,
        )
        return self.http.stream(request)


def _key(endpoint: Endpoint) -> dict[str, str]:
    key = endpoint.key.strip()
    if not key:
        return {}
    match endpoint.api:
        case "anthropic":
            return {"X-Api-Key": key}
        case "google":
            return {"X-Goog-Api-Key": key}
        case _:
            return {"Authorization": f"Bearer {key}"}
