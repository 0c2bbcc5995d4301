"""Every error the software raises on purpose.

OpenFangError
├── ConfigError           a file is wrong; names file, line and key
├── HomeError             the home cannot be used (missing, read-only, foreign, corrupt)
├── NotFound              a thing asked for by name does not exist
├── Conflict              a thing exists already, or is in a state that forbids the act
├── Rejected              a request that no edge can serve (malformed, too large, not allowed here)
├── CallRefused           nothing ran
│   ├── Unauthenticated   no credential, or one that is not known
│   ├── UnknownTool       no such tool, or none that this caller may see
│   ├── InvalidArguments  too large, or not what the schema asks for
│   ├── GuardTripped      too deep, too often, too much (recursion, loop, rate, breaker)
│   ├── PolicyViolation   a gate said no
│   ├── FlowRefused       labels may not reach this sink
│   ├── Parked            a question waits for a person
│   └── AuditUnavailable  it could not be recorded, so it did not happen
└── CallFailed            it ran, and did not end well
    ├── CallTimedOut
    ├── CallCancelled
    ├── SourceFailed      the tool or its server broke
    └── Unrecorded        it ran, and its ending could not be written yet

`code` never changes. The message is a sentence; `way_out` says what would help.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from openfang.core.labels import Labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.core.decisions import Verdict
    from openfang.core.results import Receipt


RATE_LIMIT = "rate_limit"
INVALID_TOKEN = "invalid_token"  # noqa: S105 - a rule, in the words of RFC 6750
INSUFFICIENT_SCOPE = "insufficient_scope"


class OpenFangError(Exception):
    """Something that a person can act on."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, way_out: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.way_out = way_out


class ConfigError(OpenFangError):
    """A configuration file is wrong."""

    code = "config"


class HomeError(OpenFangError):
    """The home folder or its database cannot be used."""

    code = "home"


class NotFound(OpenFangError):  # noqa: N818 - it reads as what it is
    """What was asked for by name does not exist."""

    code = "not_found"


class Conflict(OpenFangError):  # noqa: N818 - it reads as what it is
    """What was asked for contradicts what is there."""

    code = "conflict"


class Rejected(OpenFangError):  # noqa: N818 - it reads as what it is
    """A request that the edge turned away; `status` is the answer's."""

    code = "rejected"

    def __init__(self, message: str, *, status: int, rule: str, way_out: str = "") -> None:
        super().__init__(message, way_out=way_out)
        self.status = status
        self.rule = rule


class CallRefused(OpenFangError):  # noqa: N818 - the two families of outcomes read as outcomes
    """Nothing ran. `step` is the stage of the pipeline that said no."""

    code = "refused"
    step: ClassVar[str] = "admit"

    def __init__(
        self,
        message: str,
        *,
        way_out: str = "",
        rule: str = "",
        verdicts: Sequence[Verdict] = (),
    ) -> None:
        super().__init__(message, way_out=way_out)
        self.rule = rule or self.code
        self.verdicts = tuple(verdicts)


class Unauthenticated(CallRefused):
    """No credential, or one that is not known."""

    code = "unauthenticated"
    step = "identify"


class UnknownTool(CallRefused):
    """No such tool, or none that this caller may see: the two are told apart in the audit only."""

    code = "unknown_tool"
    step = "resolve"

    def __init__(self, name: str, *, hidden: bool = False) -> None:
        what = "agents" if name.startswith("agent:") else "tools"
        super().__init__(f"Unknown tool: {name}", way_out=f"openfang {what} list")
        self.hidden = hidden


class InvalidArguments(CallRefused):
    """The arguments are too large, or not what the tool's schema asks for."""

    code = "invalid_arguments"
    step = "arguments"


class GuardTripped(CallRefused):
    """Too deep, too often or too much. `rule` names the guard, `retry_after` is in seconds.

    Of a chain, `path` says who waits in it and what was called at which `depth`.
    """

    code = "guard"
    step = "guard"

    def __init__(  # noqa: PLR0913 - each is of another guard
        self,
        message: str,
        *,
        rule: str,
        way_out: str = "",
        retry_after: float | None = None,
        depth: int = 0,
        path: Sequence[str] = (),
    ) -> None:
        super().__init__(message, way_out=way_out, rule=rule)
        self.retry_after = retry_after
        self.depth = depth
        self.path = tuple(path)


class PolicyViolation(CallRefused):
    """A gate said no."""

    code = "policy_violation"
    step = "gate"


class FlowRefused(CallRefused):
    """What the call carries may not reach what it would reach."""

    code = "flow"
    step = "flow"


class Parked(CallRefused):
    """A person has to answer first; the question is stored under `question_id`."""

    code = "parked"
    step = "approval"

    def __init__(
        self, message: str, *, question_id: str, rule: str, verdicts: Sequence[Verdict] = ()
    ) -> None:
        way_out = f"openfang approvals approve {question_id}, then send the identical call again"
        super().__init__(message, way_out=way_out, rule=rule, verdicts=verdicts)
        self.question_id = question_id


class AuditUnavailable(CallRefused):
    """The record could not be written, so nothing was done."""

    code = "audit_unavailable"
    step = "record"


class CallFailed(OpenFangError):  # noqa: N818 - see CallRefused
    """It ran, and did not end well. The pipeline adds which call it was, its receipt, its labels.

    The message may be somebody else's words: who reads it has read them.
    """

    code = "failed"

    def __init__(self, message: str, *, way_out: str = "") -> None:
        super().__init__(message, way_out=way_out)
        self.call_id = ""
        self.receipt: Receipt | None = None
        self.labels = Labels.NONE


class CallTimedOut(CallFailed):
    """It ran longer than it may."""

    code = "timeout"


class CallCancelled(CallFailed):
    """The caller, or somebody with the right to, stopped it."""

    code = "cancelled"


class SourceFailed(CallFailed):
    """The tool, or the server behind it, broke."""

    code = "source_failed"


class Unrecorded(CallFailed):
    """It ran, but its ending could not be recorded yet; the result is withheld."""

    code = "unrecorded"
