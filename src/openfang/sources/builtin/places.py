"""`location_get`: where the node is, as its operator says or a service that the operator named."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from openfang.core.errors import SourceFailed
from openfang.core.labels import Labels
from openfang.core.results import Result, text_result
from openfang.core.tools import Risk
from openfang.core.values import dataclass
from openfang.safety.urls import parse_target
from openfang.sources.builtin.external import marked, one_line
from openfang.sources.builtin.source import Builtin, builtin_tool, object_schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.core.calls import Admitted
    from openfang.host.http import Response

_MAX_BYTES: Final = 100_000
_LONGEST: Final = 100
_OK: Final = 200
_NOWHERE: Final = (
    "latitude and longitude, city, region, country or timezone, or service, "
    "below [tools.location] in config.toml"
)
# Our words, and those of the services that answer as ip-api.com does.
_WORDS: Final = {
    "city": "city",
    "region": "regionName",
    "country": "country",
    "timezone": "timezone",
}
_NUMBERS: Final = {"latitude": ("lat", 90.0), "longitude": ("lon", 180.0)}
_GET = builtin_tool(
    "location_get",
    "Tell where you are: latitude, longitude, city, region, country and time zone.",
    object_schema(),
    risk=Risk.LOW,
    tags=frozenset[str](),
    labels=Labels.PRIVATE,
    idempotent=True,
)
_ASK = replace(
    _GET,
    tags=frozenset({"network.http"}),
    labels=Labels.PRIVATE | Labels.EXTERNAL_NETWORK,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Who is asked where the node is."""

    url: str
    allow_private: bool = False
    timeout: float = 10.0


def place_tools(place: Mapping[str, Any], service: Service | None) -> Sequence[Builtin]:
    """The family of places: what the operator wrote down, else what the service says."""

    async def told(admitted: Admitted) -> Result:
        del admitted
        if not place:
            raise SourceFailed("No location is configured.", way_out=_NOWHERE)
        return text_result(_line(place), structured=dict(place))

    async def asked(admitted: Admitted) -> Result:
        assert service is not None  # noqa: S101 - only then it is called
        found = _read(await _answer(service, admitted.timeout))
        return text_result(marked(_line(found)), structured=found)

    return [Builtin(_ASK, asked) if service else Builtin(_GET, told)]


async def _answer(service: Service, seconds: float) -> Response:
    from openfang.host.http import HttpClient, Request  # noqa: PLC0415 - aiohttp takes 0.4 s

    request = Request(
        url=service.url,
        allow_hosts=(parse_target(service.url).host,),
        headers={"Accept": "application/json"},
        limit=_MAX_BYTES,
        timeout=min(service.timeout, seconds),
        allow_private=service.allow_private,
        follow=False,
    )
    async with HttpClient() as client:
        return await client.fetch(request)


def _read(response: Response) -> dict[str, Any]:
    """Take what we have words for; anything else that it says is left out."""
    if response.status != _OK:
        raise _failed(f"answered with HTTP {response.status}")
    try:
        answer = orjson.loads(response.body)
    except orjson.JSONDecodeError:
        raise _failed("answered with something that is no JSON") from None
    if not isinstance(answer, dict):
        raise _failed("answered with JSON that is no location")
    fields = cast("dict[str, Any]", answer)
    if fields.get("status") == "fail":
        raise _failed(f"does not know: {one_line(str(fields.get('message')), _LONGEST)}")
    if found := {**_numbers(fields), **_words(fields)}:
        return found
    raise _failed("answered with JSON that is no location")


def _numbers(fields: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, (theirs, most) in _NUMBERS.items():
        number = fields.get(theirs)
        if isinstance(number, int | float) and -most <= number <= most:
            found[name] = number
    return found if len(found) == len(_NUMBERS) else {}


def _words(fields: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: fields.get(theirs) for name, theirs in _WORDS.items()}
    lines = {
        name: one_line(word, _LONGEST) for name, word in found.items() if isinstance(word, str)
    }
    return {name: line for name, line in lines.items() if line}


def _failed(reason: str) -> SourceFailed:
    return SourceFailed(f"The location service {reason}.", way_out="tools.location.service")


def _line(place: Mapping[str, Any]) -> str:
    words = [place[name] for name in ("city", "region", "country") if name in place]
    if "latitude" in place:
        words.append(f"latitude {place['latitude']}, longitude {place['longitude']}")
    if "timezone" in place:
        words.append(f"time zone {place['timezone']}")
    return ", ".join(words)
