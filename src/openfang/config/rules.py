"""The policy file: rules of the operator's, and tests of them. Unknown keys are errors."""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from openfang.config.fields import RiskName, Section, TagName, Text, meaning
from openfang.core.calls import Mode, Role
from openfang.core.ids import Kind
from openfang.core.labels import Labels
from openfang.core.tools import Risk
from openfang.core.values import dataclass
from openfang.policy.rules.hours import DAYS, EVERY_DAY, MIDNIGHT, Hours
from openfang.policy.rules.rule import Carried, Names, Rule, Says

if TYPE_CHECKING:
    from collections.abc import Iterable

    from openfang.policy.rules.conditions import Condition

RoleName: TypeAlias = Literal["user", "auditor", "approver", "admin"]
KindName: TypeAlias = Literal["builtin", "mcp", "ext", "agent", "a2a", "client"]
ModeName: TypeAlias = Literal["planning", "execution"]
EdgeName: TypeAlias = Literal[
    "a2a", "api", "cli", "mcp", "openai", "python", "resume", "schedule", "trigger", "web"
]
LabelName: TypeAlias = Literal[
    "external_network",
    "untrusted_agent",
    "user_input",
    "secret",
    "pii",
    "private",
    "local_file",
]
DayName: TypeAlias = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
_CLOCK = re.compile(r"\A(?P<hour>[01][0-9]|2[0-3]):(?P<minute>[0-5][0-9])\Z")


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise PydanticCustomError("expected", "a time zone such as Europe/Berlin") from None
    return name


RuleName = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9][a-z0-9_-]*$",
        max_length=64,
        json_schema_extra=meaning("a name of small letters, digits, - and _"),
    ),
]
Pattern = Annotated[
    str,
    Field(
        pattern=r"^!?[^\s!]\S*$",
        json_schema_extra=meaning("an id or a pattern without blanks, or `!` and one"),
    ),
]
Patterns: TypeAlias = tuple[Pattern, ...]
ClockTime = Annotated[
    str,
    Field(
        pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$",
        json_schema_extra=meaning("a time of day such as 09:30"),
    ),
]
Zone = Annotated[str, AfterValidator(_zone)]


class When(Section):
    """Times of day and days of the week."""

    after: ClockTime | None = Field(
        default=None, description="The time of day from which on it holds; unset: midnight."
    )
    before: ClockTime | None = Field(
        default=None,
        description="The time of day before which it holds; earlier than `after`: of the next day.",
    )
    days: tuple[DayName, ...] = Field(
        default=DAYS,
        min_length=1,
        description="The days on which it begins to hold, `mon` to `sun`; hours over midnight "
        "belong to the day they begin on.",
    )
    timezone: Zone = Field(default="UTC", description="The time zone of both.")

    def hours(self) -> Hours:
        """Read the words."""
        return Hours(
            zone=ZoneInfo(self.timezone),
            start=_minute(self.after, 0),
            end=_minute(self.before, MIDNIGHT),
            days=frozenset(DAYS.index(day) for day in self.days) or EVERY_DAY,
        )


def _minute(clock: str | None, unset: int) -> int:
    found = _CLOCK.match(clock or "")
    return unset if found is None else int(found["hour"]) * 60 + int(found["minute"])


class Carries(Section):
    """What a call must carry, in the words of the flow rules."""

    any: tuple[LabelName, ...] = Field(
        default=(),
        description="One of these: `external_network`, `untrusted_agent`, `user_input`, `secret`, "
        "`pii`, `private`, `local_file`.",
    )
    all: tuple[LabelName, ...] = Field(default=(), description="Each of these.")
    none: tuple[LabelName, ...] = Field(default=(), description="None of these.")

    def carried(self) -> Carried:
        """Read the words."""
        return Carried(Labels.of(self.any), Labels.of(self.all), Labels.of(self.none))


class RuleEntry(Section):
    """One rule. Every key narrows what it is about; one that is unset does not."""

    name: RuleName = Field(
        description="Its name: small letters, digits, `-` and `_`; no other rule has it."
    )
    effect: Says = Field(
        description="`deny` refuses, `ask` asks a person, `allow` says yes in a person's place, "
        "`hide` lets the tool not exist."
    )
    enabled: bool = Field(
        default=True, description="Whether it holds; one that is off is checked all the same."
    )
    shadow: bool = Field(
        default=False, description="Whether it is only looked at and recorded, and changes nothing."
    )
    callers: Patterns = Field(
        default=(),
        description="Who calls: `key:NAME`, `agent:NAME`, `oauth:SUBJECT`, `mcp:SERVER` and "
        "`a2a:PEER` (who ask something back), `local-mcp`, or patterns; `!` before what is not "
        "meant.",
    )
    roles: tuple[RoleName, ...] = Field(
        default=(),
        description="The roles of who calls: `user`, `auditor`, `approver`, `admin`; of all "
        "callers only keys have another role than `user`.",
    )
    edges: tuple[EdgeName, ...] = Field(
        default=(),
        description="Where the call, or the one that led to it, came in: `a2a`, `api`, `cli`, "
        "`mcp`, `openai`, `python`, `resume`, `schedule`, `trigger`, `web`.",
    )
    tools: Patterns = Field(
        default=(),
        description="Canonical ids of tools (`builtin:shell_exec`, `mcp:SERVER:TOOL`, "
        "`agent:NAME`), or patterns; `!` before what is not meant.",
    )
    kinds: tuple[KindName, ...] = Field(
        default=(),
        description="Where the tools come from: `builtin`, `mcp`, `ext`, `agent`, `a2a`, `client`.",
    )
    sources: Patterns = Field(
        default=(),
        description="Who offers them: names of servers, agents and peers, or `builtin`; patterns, "
        "and `!`, as above.",
    )
    risk: RiskName | None = Field(default=None, description="Tools of this risk or a higher one.")
    tags: tuple[TagName, ...] = Field(
        default=(), description="Tools that have one of these side-effect tags."
    )
    mode: ModeName | None = Field(default=None, description="Calls of this mode.")
    labels: Carries = Field(
        default=Carries(), description="What the call carries, in the words below."
    )
    when: When | None = Field(default=None, description="When it holds; unset: always.")
    condition: Text | None = Field(
        default=None, description="A CEL expression over the call that must be true."
    )
    reason: str = Field(default="", description="The sentence that a caller or a person reads.")
    way_out: str = Field(default="", description="What helps who is refused.")

    def rule(self, condition: Condition | None, *, shadow: bool) -> Rule:
        """Read the words."""
        return Rule(
            name=self.name,
            says=self.effect,
            callers=_names(self.callers),
            roles=frozenset(map(Role, self.roles)),
            edges=frozenset(self.edges),
            tools=_names(self.tools),
            kinds=frozenset(map(Kind, self.kinds)),
            sources=_names(self.sources),
            risk=self.risk,
            tags=frozenset(self.tags),
            mode=None if self.mode is None else Mode(self.mode),
            labels=self.labels.carried(),
            hours=None if self.when is None else self.when.hours(),
            condition=condition,
            reason=self.reason,
            way_out=self.way_out,
            shadow=self.shadow or shadow,
        )


def _names(patterns: Iterable[str]) -> Names:
    wanted = tuple(one for one in patterns if not one.startswith("!"))
    return Names(wanted, tuple(one[1:] for one in patterns if one.startswith("!")))


class TestEntry(Section):
    """A call that is not made, and what the rules must say of it."""

    __test__ = False  # its name is not meant for a test runner

    caller: Text = Field(description="Who calls.")
    tool: Text = Field(description="The canonical id of a tool.")
    expect: Literal["allow", "ask", "deny", "hide", "none"] = Field(
        description="What the rules say; `none`: nothing, the gates decide alone."
    )
    rule: RuleName | None = Field(default=None, description="The rule that must have said it.")
    role: RoleName = Field(default="user", description="The role of who calls.")
    edge: EdgeName = Field(default="api", description="Where the call comes in.")
    mode: ModeName = Field(default="execution", description="The mode of the call.")
    args: dict[str, Any] = Field(default={}, description="Its arguments.")
    labels: tuple[LabelName, ...] = Field(default=(), description="What it carries.")
    risk: RiskName = Field(
        default=Risk.MEDIUM, description="The risk of a tool that the node does not know."
    )
    tags: tuple[TagName, ...] = Field(
        default=("unknown",), description="The tags of a tool that the node does not know."
    )
    at: Text | None = Field(
        default=None, description="When it is made, as 2026-11-17T12:00:00Z; unset: now."
    )


class PolicyFile(Section):
    """Every key that a policy file may have."""

    rules: tuple[RuleEntry, ...] = Field(default=(), description="The rules.")
    tests: tuple[TestEntry, ...] = Field(default=(), description="What must come of them.")


@dataclass(frozen=True, slots=True)
class Rules:
    """A policy file as it was read, and its rules, compiled; those that are off are not there."""

    file: PolicyFile
    compiled: tuple[Rule, ...] = field(default=(), compare=False)
    shadow: bool = False


NO_RULES = Rules(PolicyFile())
