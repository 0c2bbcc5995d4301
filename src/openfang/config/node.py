"""What one node allows, counts, keeps and writes down."""

import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    PlainSerializer,
    SecretStr,
    Tag,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from openfang.config.fields import (
    Count,
    Dollars,
    Glob,
    HomePath,
    Scope,
    Seconds,
    Section,
    TagName,
    Text,
    Url,
    meaning,
    resolved,
)
from openfang.core.values import dataclass

_PLUGIN = re.compile(r"\Apython:(?P<path>[^:\0]+\.py):(?P<name>[A-Za-z_][A-Za-z0-9_]*)\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A class of the operator's own, by file and name."""

    path: Path
    name: str

    def __str__(self) -> str:
        return f"python:{self.path}:{self.name}"


def _plugin(text: object, info: ValidationInfo) -> Plugin:
    if isinstance(text, Plugin):
        return text
    found = _PLUGIN.match(text) if isinstance(text, str) else None
    if found is None:
        raise PydanticCustomError("expected", "python:file.py:Class")
    return Plugin(path=Path(resolved(found["path"], info)), name=found["name"])


PluginName = Annotated[
    Plugin,
    BeforeValidator(_plugin),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "pattern": r"^python:[^:]+\.py:[A-Za-z_][A-Za-z0-9_]*$"}),
]


class Costs(Section):
    """Cells that one request takes from its caller's rate."""

    message: Count = Field(default=30, description="Cells for a message to an agent.")
    call: Count = Field(default=5, description="Cells for a tool call.")
    health: Count = Field(default=1, description="Cells for a look at the node's state.")


class Limits(Section):
    """The rate of each key and each address."""

    cells_per_minute: Count = Field(default=500, description="Cells that come back in a minute.")
    burst: Count = Field(default=500, description="Cells that can be spent at once.")
    costs: Costs = Field(default=Costs(), description="Cells that one request takes.")


class Budget(Section):
    """What all agents together may spend, in US dollars; 0 means no bound."""

    max_hourly_usd: Dollars = Field(default=0, description="US dollars in any hour.")
    max_daily_usd: Dollars = Field(default=0, description="US dollars in a day, in UTC.")
    max_monthly_usd: Dollars = Field(default=0, description="US dollars in a month, in UTC.")


class Server(Section):
    """What a connection may take. Read at the start of the node."""

    connections: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=1000, description="Connections at once; one more takes the place of an idle one."
    )
    head_secs: Seconds = Field(
        default=10, description="Seconds in which the head of a request must come."
    )
    body_secs: Seconds = Field(
        default=30, description="Seconds in which its body must come; a large one gets longer."
    )
    idle_secs: Seconds = Field(
        default=75, description="Seconds for which a connection may wait for its next request."
    )
    drain_secs: Seconds = Field(
        default=10, description="Seconds that calls in flight get when the node is told to end."
    )


class Policy(Section):
    """How strictly the gates read."""

    profile: Literal["guided", "seed"] = Field(
        default="guided",
        description="`seed`: the six gates as they stand; `guided`: an approval or a standing "
        "grant may stand in for a frozen spec.",
    )
    blacklist: tuple[TagName, ...] = Field(
        default=(), description="Side-effect tags that gate 5 refuses for everybody."
    )
    file: HomePath | None = Field(
        default=None,
        description="Where the rules are; unset: `policy.toml` in the home, if it is there.",
    )
    shadow: bool = Field(
        default=False, description="Whether all rules are only recorded, and change nothing."
    )


class Plugins(Section):
    """The operator's own classes."""

    gates: tuple[PluginName, ...] = Field(
        default=(), description="Gates that are asked after the six, as `python:file.py:Class`."
    )
    adapters: tuple[PluginName, ...] = Field(
        default=(), description="Classifiers of foreign tools, as `python:file.py:Class`."
    )
    audit_handlers: tuple[PluginName, ...] = Field(
        default=(), description="Readers behind the audit log, as `python:file.py:Class`."
    )


class Anchor(Section):
    """Where signed checkpoints are sent, so that nobody here can take them back."""

    url: Url = Field(description="The address that gets each checkpoint, as lines of JSON.")
    secret: SecretStr | None = Field(
        default=None,
        min_length=16,
        description="The key that signs what is sent, at least 16 characters.",
    )
    allow_private: bool = Field(
        default=False, description="Open loopback and private addresses; never metadata services."
    )


class Audit(Section):
    """The audit log, its checkpoints and its sinks."""

    fsync: bool = Field(
        default=False, description="Whether each commit also survives a loss of power."
    )
    checkpoint_every: Count = Field(
        default=1000, description="Records after which a signed checkpoint is written."
    )
    checkpoint_seconds: Seconds = Field(
        default=10, description="Seconds after which new records get a signed checkpoint."
    )
    checkpoint_file: HomePath = Field(
        default="checkpoints/checkpoints.jsonl",
        validate_default=True,
        description="Where checkpoints are kept, from the home; better on another disk.",
    )
    anchor: Anchor | None = Field(
        default=None, description="An address outside that gets every signed checkpoint."
    )
    jsonl: HomePath | None = Field(
        default=None, description="A file that gets each entry as a line of JSON."
    )
    stdout: bool = Field(
        default=False, description="Whether each entry is also written to standard output."
    )


class Webhook(Section):
    """Where questions are sent."""

    url: Url = Field(description="The address that gets each question.")
    secret: SecretStr = Field(
        min_length=16, description="The key that signs what is sent, at least 16 characters."
    )
    allow_private: bool = Field(
        default=False, description="Open loopback and private addresses; never metadata services."
    )


class Approvals(Section):
    """Questions to a person."""

    timeout_secs: Annotated[float, Field(gt=0, le=30 * 86_400)] = Field(
        default=3600, description="Seconds after which an unanswered question is denied."
    )
    max_pending: Count = Field(
        default=100, description="Questions of one caller that may be open at once."
    )
    ask_clients: bool = Field(
        default=True,
        description="Whether the person at an MCP client that shows forms may answer for its "
        "calls.",
    )
    four_eyes: tuple[Glob, ...] = Field(
        default=(),
        description="Tools, by glob, for which whoever asked, or began the chain, may not answer.",
    )
    webhook: Webhook | None = Field(default=None, description="Where questions are sent.")


def _audience_form(audience: object) -> str:
    return "one" if isinstance(audience, str) else "several"


Audience = Annotated[
    Annotated[Text, Tag("one")] | Annotated[tuple[Text, ...], Field(min_length=1), Tag("several")],
    Discriminator(_audience_form),
]


HttpEdge = Literal["api", "mcp", "a2a", "openai"]


class Holder(Section):
    """What whoever has a scope is here, in the words of a key."""

    role: Literal["user", "auditor", "approver", "admin"] = Field(
        default="user", description="What they may do with the node, as a key's `--role`."
    )
    edges: tuple[HttpEdge, ...] = Field(
        default=(), description="Where they may come in: api, mcp, a2a, openai; empty means each."
    )
    toolsets: tuple[str, ...] | None = Field(
        default=None, description="The toolsets they are bound to; unset, as agents, means any."
    )
    agents: tuple[str, ...] | None = Field(
        default=None, description="The agents they are bound to; unset, as toolsets, means any."
    )
    projects: tuple[str, ...] = Field(
        default=(), description="The projects they may use; empty means `default`."
    )
    mode: Literal["planning", "execution"] = Field(
        default="execution", description="`planning` refuses side effects."
    )
    cells_per_minute: Count | None = Field(
        default=None, description="Their own rate; unset means that of the node."
    )


class Issuer(Section):
    """The authority whose access tokens are accepted."""

    url: Url = Field(description="The issuer, as its tokens name it.")
    audience: Audience = Field(description="The audience that a token must name, or several.")
    jwks_url: Url | None = Field(
        default=None, description="Where its keys are; unset means as its metadata says."
    )
    allow_private: bool = Field(
        default=False,
        description="Open plain HTTP, loopback and private addresses; never metadata services.",
    )
    required_scopes: tuple[Scope, ...] = Field(
        default=(), description="Scopes that every token must have."
    )
    grants: dict[Scope, tuple[Glob, ...]] = Field(
        default={},
        description="Tools that each scope opens, by glob; empty means that every token opens all.",
    )

    holders: dict[Scope, Holder] = Field(
        default={}, description="What whoever has a scope is here; of several, all of it together."
    )
    scope_claims: tuple[Text, ...] = Field(
        default=("scope", "scp"),
        description="Claims that hold scopes; `a.b` is the member b of the claim a.",
    )
    name_claim: Text = Field(
        default="sub",
        description="The claim that names the holder; the issuer must make it unique.",
    )
    claims: dict[str, Text] = Field(
        default={}, description="Claims that every token must make, for example of its environment."
    )

    @model_validator(mode="after")
    def _encrypted(self) -> Self:
        """Whoever can change the keys on their way can write tokens."""
        addresses = [self.url, self.jwks_url or self.url]
        if not self.allow_private and any(one.startswith("http://") for one in addresses):
            raise PydanticCustomError("expected", "https:// addresses, or allow_private = true")
        return self

    @property
    def audiences(self) -> tuple[str, ...]:
        """The audiences of which a token must name one."""
        return (self.audience,) if isinstance(self.audience, str) else self.audience

    @property
    def scopes(self) -> tuple[str, ...]:
        """All scopes that mean something here."""
        return tuple(dict.fromkeys((*self.required_scopes, *self.grants, *self.holders)))


class Auth(Section):
    """Who may come in."""

    require_key: bool = Field(
        default=True,
        description="Whether callers need a key; false is accepted on loopback only.",
    )
    issuer: Issuer | None = Field(
        default=None, description="The authority whose access tokens are accepted."
    )


class Storage(Section):
    """Where state is kept."""

    url: str = Field(
        default="sqlite:openfang.db",
        pattern=r"^(sqlite:\S+|postgres(ql)?://\S+)$",
        json_schema_extra=meaning(
            "sqlite:FILE or postgresql://USER:PASSWORD@HOST/DATABASE without blanks"
        ),
        description="`sqlite:FILE`, from the home, or a `postgresql://` address.",
    )

    def file(self, home: Path) -> Path | None:
        """Say where the SQLite database is; none when another server keeps the state."""
        scheme, _, path = self.url.partition(":")
        return home / path if scheme == "sqlite" else None


class Secrets(Section):
    """How the key of the secret store is kept."""

    keyring: bool = Field(
        default=False, description="Keep it in the desktop's keyring instead of in the home."
    )


class Guard(Section):
    """What one chain of calls may take."""

    max_depth: Annotated[int, Field(ge=1, le=64)] = Field(
        default=5, description="Calls inside calls; the next deeper one is refused."
    )
    agent_calls: Count = Field(default=64, description="Calls to agents and peers in one chain.")
    chain_usd: Dollars = Field(
        default=0,
        description="US dollars that the agents of one chain may spend; 0 means no bound.",
    )
    tool_calls: Count = Field(default=500, description="Calls to plain tools in one run.")
    calls_at_once: Count = Field(default=16, description="Calls of one chain at the same time.")
    deadline_secs: Seconds = Field(
        default=600, description="Seconds after which a chain makes no more calls."
    )
    breaker_secs: Seconds = Field(default=30, description="Seconds for which a breaker stays open.")


class Loops(Section):
    """When repeated calls of one run count as a loop."""

    warn: Count = Field(default=3, description="Identical calls that get a warning.")
    block: Count = Field(default=5, description="Identical calls that are blocked.")
    poll_factor: Count = Field(
        default=3, description="How many times more identical calls a polling tool may get."
    )
    outcome_warn: Count = Field(default=2, description="Identical outcomes that get a warning.")
    outcome_block: Count = Field(default=3, description="Identical outcomes that are blocked.")
    no_progress: Count = Field(default=30, description="Calls without progress that end a run.")
