"""What one caller can do with a node. In process and over the wire are the same to its user."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol

from openfang.core.keys import OPEN, Scope
from openfang.core.memory import OWN
from openfang.core.values import value

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence

    from openfang.core.bookmarks import Bookmark
    from openfang.core.calls import Mode
    from openfang.core.clients import Client
    from openfang.core.decisions import Explanation
    from openfang.core.events import AuditEvent
    from openfang.core.ids import Kind
    from openfang.core.installs import InstallKind
    from openfang.core.keys import AdminToken, Key, Question, QuestionFilter, QuestionPage, Spec
    from openfang.core.log import Proof, Search, Table, Verification
    from openfang.core.memory import Wanted
    from openfang.core.progress import Listener
    from openfang.core.results import Result
    from openfang.core.sessions import SessionPage, SessionSummary, SessionTurn
    from openfang.core.tasks import Seen, Task, TaskFilter, TaskPage, TaskState
    from openfang.core.tools import Risk, Tool
    from openfang.core.trace import Chain
    from openfang.core.usage import Report, UsageQuery


@value
class Options:
    """What a caller may choose for its calls, among what is bound to its key."""

    mode: Mode | None = None
    project: str | None = None
    spec: str | None = None
    task: str | None = None
    blacklist: frozenset[str] = frozenset()
    run: str | None = None
    admin_token: str | None = field(default=None, repr=False)
    patience: float = 0.0
    progress: Listener | None = field(default=None, compare=False, repr=False)
    client: Client | None = field(default=None, compare=False, repr=False)
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False, repr=False)
    chain: Chain | None = None


NO_OPTIONS = Options()


class Session(Protocol):
    """One caller's use of a node. What it may not do is refused, on record."""

    async def call(
        self, tool: str, arguments: Mapping[str, Any], options: Options = NO_OPTIONS
    ) -> Result:
        """Take the one path."""
        ...

    async def explain(
        self, tool: str, arguments: Mapping[str, Any], options: Options = NO_OPTIONS
    ) -> Explanation:
        """Decide on such a call, and do nothing."""
        ...

    async def tools(
        self,
        *,
        kind: Kind | None = None,
        risk: Risk | None = None,
        tag: str | None = None,
        disabled: bool = False,
    ) -> Sequence[Tool]:
        """List what this caller can see, by wire name; `disabled` adds what it cannot use."""
        ...

    async def tool(self, name: str) -> tuple[Tool, Mapping[str, Any] | None]:
        """Find a tool by any name; of one that is held back, all that a person decides by."""
        ...

    async def accept_tool(self, name: str) -> Tool:
        """Take a tool that changed as it is now."""
        ...

    async def held(self, source: str = "") -> Sequence[Mapping[str, Any]]:
        """List what is held back of what others say of themselves, and why."""
        ...

    async def accept(self, id_: str, digest: str = "") -> Mapping[str, Any]:
        """Take what is held back as it is now; with a digest, only if it is still that."""
        ...

    async def whole_result(self, uri: str) -> bytes | None:
        """Read the whole of a result that was cut, as JSON, while it is kept."""
        ...

    async def questions(self, wanted: QuestionFilter = OPEN) -> QuestionPage:
        """List what waits for a person, newest first."""
        ...

    async def question(self, question_id: str) -> Question:
        """Find one question; another caller's does not exist."""
        ...

    async def answer(
        self, question_id: str, *, approve: bool, scope: Scope = Scope.ONCE
    ) -> Question:
        """Answer a question."""
        ...

    async def specs(self) -> list[Spec]:
        """List the frozen specs, oldest first."""
        ...

    async def freeze_spec(self, name: str, content: bytes, project: str) -> Spec:
        """Freeze a plan; freezing the same content again changes nothing."""
        ...

    async def keys(self) -> list[Key | AdminToken]:
        """List all keys and tokens, never their secrets."""
        ...

    async def create_key(self, key: Key, *, ttl: float | None = None) -> tuple[Key, str]:
        """Make a key; its secret is returned once and kept nowhere."""
        ...

    async def create_token(
        self, token: AdminToken, *, ttl: float | None = None
    ) -> tuple[AdminToken, str]:
        """Make an admin token, for gate 6."""
        ...

    async def revoke_key(self, name: str) -> Key | AdminToken:
        """End a key or token, by name or id."""
        ...

    async def servers(self) -> Mapping[str, Any]:
        """Show the MCP servers: `configured`, and `connected` with the tools of each."""
        ...

    async def server(self, name: str) -> Mapping[str, Any]:
        """Show everything that is known of one MCP server."""
        ...

    async def server_health(self) -> Mapping[str, str]:
        """Say of each MCP server that is enabled: healthy, degraded or unhealthy."""
        ...

    async def server_log(self, name: str) -> Sequence[str]:
        """Read what an MCP server last wrote for people."""
        ...

    async def try_server(self, name: str) -> Mapping[str, Any]:
        """Connect to an MCP server once more, to see what is wrong; it need not be enabled."""
        ...

    async def refresh_servers(self) -> Mapping[str, Any]:
        """Ask the MCP servers for their tools again: how many answered, and who did not."""
        ...

    async def change_server(self, name: str, act: str) -> Mapping[str, Any]:
        """Enable, disable or restart an MCP server."""
        ...

    async def add_server(self, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        """Write a new MCP server down; it waits until it is enabled."""
        ...

    async def remove_server(self, name: str) -> Mapping[str, Any]:
        """Take an MCP server out of the configuration."""
        ...

    async def installs(self, kind: InstallKind) -> Sequence[Mapping[str, Any]]:
        """List what is installed, by id, and how each is."""
        ...

    async def installed(self, kind: InstallKind, install_id: str) -> Mapping[str, Any]:
        """Show one, with all that a person decides by."""
        ...

    async def install(
        self, kind: InstallKind, parcel: bytes, origin: str, *, preview: bool = False
    ) -> Mapping[str, Any]:
        """Take an archive in, off; with `preview`, only say what would be taken in."""
        ...

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
        ...

    async def secrets(self) -> Sequence[Mapping[str, Any]]:
        """List the names that are stored, and those that servers miss; never a value."""
        ...

    async def set_secret(self, name: str, value: str) -> Mapping[str, Any]:
        """Store or replace a secret; servers that refer to it get it at once."""
        ...

    async def remove_secret(self, name: str, *, force: bool = False) -> Mapping[str, Any]:
        """Delete a secret; one that a server refers to only with `force`."""
        ...

    async def agents(self) -> Sequence[Mapping[str, Any]]:
        """Describe the agents that this caller may call, by name."""
        ...

    async def agent(self, name: str) -> Mapping[str, Any]:
        """Describe one; another does not exist. A message to it is a call of `agent:{name}`."""
        ...

    async def sessions(self, *, agent: str = "", after: str = "", limit: int = 50) -> SessionPage:
        """List conversations with agents, newest first: one's own, or all for who watches."""
        ...

    async def session(self, session_id: str) -> tuple[SessionSummary, Sequence[SessionTurn]]:
        """Read one whole conversation; another caller's does not exist."""
        ...

    async def export_session(self, session_id: str, form: str) -> AsyncGenerator[bytes]:
        """Write one out, however long it is: as lines of JSON (`jsonl`) or Markdown (`md`)."""
        ...

    async def delete_session(self, session_id: str) -> SessionSummary:
        """Delete one and all that was said in it."""
        ...

    async def memories(self, wanted: Wanted = OWN) -> Mapping[str, Any]:
        """List what is remembered, or find it by its words."""
        ...

    async def memory(self, key: str, wanted: Wanted = OWN) -> Mapping[str, Any]:
        """Read one memory of such a space, whole."""
        ...

    async def forget_memory(self, key: str, wanted: Wanted = OWN) -> Mapping[str, Any]:
        """Forget one; returns what it was."""
        ...

    async def schedules(self) -> Sequence[Mapping[str, Any]]:
        """List schedules, oldest first: one's own, or all for who watches."""
        ...

    async def schedule(self, schedule_id: str) -> Mapping[str, Any]:
        """Read one; another caller's does not exist."""
        ...

    async def create_schedule(self, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        """Have an agent told something at a later time, as the built-in tool does."""
        ...

    async def change_schedule(self, schedule_id: str, act: str) -> Mapping[str, Any]:
        """Delete, pause or resume one, or let it run now."""
        ...

    async def nodes(self) -> Sequence[Mapping[str, Any]]:
        """List the nodes that share the database, by name."""
        ...

    async def change_node(self, node: str, act: str) -> Mapping[str, Any]:
        """Drain one, let it take work again, or remove one that is dead or has left."""
        ...

    async def usage(self, wanted: UsageQuery) -> Report:
        """Add up what was used: by everybody for who watches, else for this caller."""
        ...

    async def send_task(
        self, agent: str, message: str, *, context: str = "", task: str = ""
    ) -> Task:
        """Give an agent of ours work that outlives this; returns at once, when it is kept.

        With a task it is the answer that this one waited for.
        """
        ...

    async def tasks(self, wanted: TaskFilter) -> TaskPage:
        """List tasks, the last changed first: one's own, or all for who watches."""
        ...

    async def task(self, task_id: str) -> tuple[Task, Sequence[tuple[int, int, TaskState]]]:
        """Read one and the states it went through: number, time, state. Another's is not there."""
        ...

    def watch_task(self, task_id: str) -> AsyncGenerator[Seen]:
        """Tell one as it is, then all that happens to it, until it has ended."""
        ...

    async def cancel_task(self, task_id: str) -> Task:
        """End one, and the work on it. `Conflict`: it has ended already."""
        ...

    async def peers(self) -> Sequence[Mapping[str, Any]]:
        """Say of each agent elsewhere that is configured who it is, and how."""
        ...

    async def discover_peer(self, name: str) -> Mapping[str, Any]:
        """Ask one of them for its card now, and say who it is, and how."""
        ...

    async def search(self, wanted: Search) -> list[AuditEvent]:
        """Find the newest entries that match, oldest first."""
        ...

    async def heads(self) -> Bookmark:
        """Say where the log ends now: the last record of each node."""
        ...

    def after(self, seen: int | Bookmark) -> AsyncIterator[AuditEvent]:
        """Read every entry after this one, those of each node in order."""
        ...

    async def sql(self, text: str) -> list[Table]:
        """Run queries that only read: of each the columns' names and the first rows."""
        ...

    def export(self, after: int | Bookmark) -> AsyncIterator[Mapping[str, Any]]:
        """Read the same with all that is hashed: a signed head, checkpoints, then records."""
        ...

    async def prove(self, seq: int, digest: str) -> Proof:
        """Say whether the log has this record with this hash."""
        ...

    async def verify(self) -> Verification:
        """Check the whole log against its hashes and its signed checkpoints."""
        ...
