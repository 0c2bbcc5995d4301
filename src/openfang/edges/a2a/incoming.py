"""A request before the library reads it: its version, and what the library takes for good.

What is wrong here is answered here, in the words of the protocol.
"""

from __future__ import annotations

import binascii
import sys
from typing import TYPE_CHECKING, Any, Final, cast

from anyio import to_thread

from openfang.core.values import dataclass
from openfang.edges.a2a.faults import WrongType, sentence
from openfang.edges.a2a.reading import wrong
from openfang.edges.a2a.sdk import errors, pb
from openfang.edges.a2a.versions import (
    HEADER,
    LARGE,
    METHODS,
    V03,
    V1,
    VERSIONS,
    asked_version,
    known_version,
    version_of_method,
)
from openfang.safety.sizes import MAX_DEPTH, is_within

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from openfang.edges.a2a.aside import Aside
    from openfang.edges.a2a.bodies import Body
    from openfang.edges.api.mount import Came

_STATES: Final = frozenset(pb.TaskState.keys())
_SHOWN: Final = 60
_FILES: Final = ("raw", "bytes", "fileWithBytes", "file_with_bytes")
_OTHER_ALPHABET: Final = str.maketrans("-_", "+/")
_OF_03: Final = "/v1/"
_MOST_READ: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """What a request says. `body` is its JSON, if it has any."""

    version: str
    body: Any = None

    @property
    def method(self) -> str:
        """The method of a call, if it names one."""
        match self.body:
            case {"method": str(method)}:
                return method
            case _:
                return ""


def opened(body: Body) -> Any:  # noqa: ANN401 - any JSON
    """Look into a body that was read; what could not be is told in the protocol's words."""
    error = body.error
    if error is None:
        return body.value
    match error.rule:
        case "content_type":
            raise WrongType(sentence(error))
        case "not_json":
            raise errors.JSONParseError(error.message)
        case _:
            raise errors.InvalidRequestError(sentence(error))


async def lean_call(came: Came, body: Any, aside: Aside) -> Any:  # noqa: ANN401 - any JSON
    """Do so with a call's parameters."""
    match body:
        case {"params": params}:
            return {**body, "params": await lean(came, params, aside)}
        case list():
            raise errors.InvalidRequestError("Requests are taken one at a time.")
        case _:
            return body


async def lean(came: Came, params: object, aside: Aside) -> Any:  # noqa: ANN401 - any JSON
    """Leave to the library what it must look at, and no more than it can at a time."""
    if len(came.body) < LARGE:
        return _lean(params, aside)
    return await to_thread.run_sync(_lean, params, aside)


def _lean(params: object, aside: Aside) -> object:
    if not is_within(params, levels=MAX_DEPTH, values=sys.maxsize):
        raise wrong("params", f"are nested deeper than {MAX_DEPTH} levels")
    rest = aside.request(params)
    if not is_within(rest, levels=MAX_DEPTH, values=_MOST_READ):
        raise wrong("params", f"have more than {_MOST_READ} values beside data and metadata")
    return rest


def read_version(came: Came) -> str:
    """Find the version that a request speaks."""
    written = asked_version(came.headers, came.query)
    version = known_version(written)
    if version is None:
        raise errors.VersionNotSupportedError(
            f"A2A {written[:_SHOWN]!r} is not spoken here. Way out: {HEADER}: "
            f"{' or '.join(VERSIONS)}.",
            {"supported": ",".join(VERSIONS)},
        )
    return version


def check_method(incoming: Incoming) -> None:
    """Refuse a method of another version."""
    method, version = incoming.method, incoming.version
    if method and method not in METHODS[version]:
        raise _not_there(method, version)


def _not_there(method: str, version: str) -> errors.A2AError:
    other = version_of_method(method)
    if other == V1:
        # Who calls it so speaks 1.0, and has only not said it.
        return errors.VersionNotSupportedError(
            f"{method} is a method of A2A {V1}, and a request without {HEADER} speaks {V03}. "
            f"Way out: {HEADER}: {V1}.",
            {"supported": ",".join(VERSIONS)},
        )
    hint = f" Way out: {HEADER}: {other}." if other else ""
    return errors.MethodNotFoundError(f"A2A {version} has no method {method[:_SHOWN]!r}.{hint}")


def check_path(path: str, version: str) -> None:
    """Refuse an address of another version."""
    if path.startswith(_OF_03) != (version == V03):
        other = V1 if version == V03 else V03
        raise errors.VersionNotSupportedError(
            f"What is at this address is of A2A {other}, and the request speaks {version}. "
            f"Way out: {HEADER}: {other}.",
            {"supported": ",".join(VERSIONS)},
        )


def check_extensions(wanted: frozenset[str], declared: Mapping[str, bool]) -> frozenset[str]:
    """Return those that both sides know; one that the card demands must be among them."""
    for uri, required in declared.items():
        if required and uri not in wanted:
            raise errors.ExtensionSupportRequiredError(
                f"This agent demands {uri}. Way out: A2A-Extensions: {uri}."
            )
    return wanted & declared.keys()


def check_call(body: object) -> None:
    """Refuse values of a call that the library would not look at."""
    check_values(_member(body, "params"))


def check_values(params: object) -> None:
    """Refuse a state that nobody knows, and content that is no base 64."""
    state = _member(params, "status")
    if isinstance(state, str) and state not in _STATES:
        raise wrong("status", f"is {state[:_SHOWN]!r}, which is no state of a task")
    if not all(map(_is_base64, _contents(_member(params, "message")))):
        raise wrong("message.parts", "have content that is no base 64")


def _contents(message: object) -> Iterator[object]:
    """Find the content of all files in a message of any version."""
    parts = _member(message, "parts") or _member(message, "content")
    if isinstance(parts, list):
        for part in cast("list[object]", parts):
            yield from _files(_member(part, "file") or part)


def _files(held: object) -> Iterator[object]:
    return (_member(held, name) for name in _FILES)


def _member(value: object, name: str) -> object:
    return cast("dict[str, object]", value).get(name) if isinstance(value, dict) else None


def plain_base64(content: str) -> str:
    """Write base 64 of either alphabet, padded or not, as it usually is."""
    text = content.translate(_OTHER_ALPHABET).rstrip("=")
    return text + "=" * (-len(text) % 4)


def _is_base64(content: object) -> bool:
    """Whether it is base 64 of either alphabet, padded or not; what is no text is another's."""
    if not isinstance(content, str):
        return True
    try:
        binascii.a2b_base64(plain_base64(content), strict_mode=True)
    except ValueError:
        return False
    return True
