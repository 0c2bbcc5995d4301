"""From a skill's folder, with `SKILL.md`, `skill.toml` or both, to one value, or what is wrong.

Read as others write them: what we do not know is kept, and what is odd is noted. Only who it is
and what is run has to be right.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeGuard, cast

from openfang.config.documents import Document, read_document, read_text
from openfang.config.fields import Folders
from openfang.config.front_matter import UNQUOTED, FrontMatter, FrontMatterProblem, split
from openfang.config.merge import frozen
from openfang.config.models import Place
from openfang.config.problems import Problem, shown, spell
from openfang.config.skill_toml import LONGEST_DESCRIPTION, LONGEST_NAME, SkillToml
from openfang.config.validate import validated
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

Runtime: TypeAlias = Literal["python", "node", "shell"]
MARKDOWN: Final = ("SKILL.md", "skill.md")
TOML: Final = "skill.toml"
CONTEXT: Final = "prompt_context.md"
SCRIPTS: Final = "scripts"
_NAME: Final = re.compile(r"\A[a-z0-9][a-z0-9_-]*\Z")
_WORDS: Final = re.compile(r"[^\s,(]+(?:\([^)]*\))?")
_FAMILY: Final = ("openclaw", "clawdbot", "clawdis", "moltbot")
_LONGEST_COMPATIBILITY: Final = 500
_NETWORK: Final = re.compile(r"\A(?:net|network|netconnect)(?:[._:(].*)?\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillTool:
    """One tool, as `skill.toml` declares it."""

    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillVariable:
    """One setting: who does not say it may have it in the variable `env`."""

    name: str
    description: str = ""
    env: str = ""
    default: str | None = None
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillFile:
    """All that a skill says of itself. `notes` are oddities that stop nothing.

    `wishes` are tools that its author would let a model use unasked: nothing is granted by them.
    """

    name: str
    description: str
    version: str = "0.1.0"
    author: str = ""
    license: str = ""
    compatibility: str = ""
    emoji: str = ""
    tags: tuple[str, ...] = ()
    instructions: str = ""
    runtime: Runtime | None = None
    entry: str = ""
    tools: tuple[SkillTool, ...] = ()
    wishes: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    variables: tuple[SkillVariable, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    notes: tuple[Problem, ...] = ()

    @property
    def network(self) -> bool:
        """Whether it asks for the network."""
        return any(_NETWORK.match(one) for one in self.capabilities)


def is_skill(folder: Path) -> bool:
    """Whether a folder holds one."""
    return any((folder / name).is_file() for name in (*MARKDOWN, TOML))


def read_skill(folder: Path, *, placed: bool = True) -> SkillFile | list[Problem]:
    """Read a folder; one that is only on its way, and not `placed`, has no name to compare."""
    reading = _Reading(folder, folder.name, placed)
    found = reading.read()
    return found if found is not None and not reading.problems else reading.problems


@dataclass(slots=True)
class _Reading:
    folder: Path
    name: str
    placed: bool
    problems: list[Problem] = field(default_factory=list[Problem])
    notes: list[Problem] = field(default_factory=list[Problem])

    def read(self) -> SkillFile | None:
        file = next((one for one in MARKDOWN if (self.folder / one).is_file()), "")
        toml = (self.folder / TOML).is_file()
        if not file and not toml:
            what = f"expected {MARKDOWN[0]} or {TOML}, got neither"
            self.problems.append(
                Problem(Place(self.name if self.placed else "the folder"), "", what)
            )
            return None
        head = self.markdown(file) if file else None
        if toml:
            return self.by_toml(head)
        return self.by_markdown(file, head) if head is not None else None

    def markdown(self, file: str) -> FrontMatter | None:
        match read_text(self.folder / file, file):
            case Problem() as problem:
                self.problems.append(problem)
                return None
            case text:
                return self.split(file, text)

    def split(self, file: str, text: str) -> FrontMatter | None:
        try:
            head = split(text)
        except FrontMatterProblem as error:
            if (self.folder / TOML).is_file():  # that one says who it is
                return FrontMatter(data={}, lines={}, body=text)
            where = Place(file, error.line)
            self.problems.append(Problem(where, "", str(error), column=error.column))
            return None
        if head.mended:
            self.notes.append(Problem(Place(file, head.mended), "", UNQUOTED))
        return head

    def by_markdown(self, file: str, head: FrontMatter) -> SkillFile | None:
        table = _Table(file, head, self)
        name = table.named()
        description = table.described()
        if self.problems:
            return None
        claw = table.claw()
        requires = _mapping(claw.get("requires"))
        return SkillFile(
            name=name,
            description=description,
            version=table.text("version") or _text(table.metadata().get("version")) or "0.1.0",
            author=table.text("author") or _text(table.metadata().get("author")),
            license=table.text("license"),
            compatibility=table.text("compatibility", _LONGEST_COMPATIBILITY),
            emoji=_text(claw.get("emoji")),
            tags=_words(table.head.data.get("tags")),
            instructions=head.body,
            wishes=_words(head.data.get("allowed-tools")),
            programs=_words(requires.get("bins")),
            variables=tuple(_needed(requires, claw)),
            extra=table.extra(),
            notes=tuple(self.notes),
        )

    def by_toml(self, head: FrontMatter | None) -> SkillFile | None:
        match read_document(self.folder / TOML, TOML):
            case Problem() as problem:
                self.problems.append(problem)
                return None
            case document:
                return self.of_document(document, head)

    def of_document(self, document: Document, head: FrontMatter | None) -> SkillFile | None:
        folders = Folders(home=self.folder, user=self.folder)
        match validated(SkillToml, frozen(document.data), document.place, folders):
            case list() as problems:
                self.problems += problems
                return None
            case said:
                self.check_entry(said, document)
                self.check_tools(said, document)
                self.misnamed(said.skill.name, document.place(("skill", "name")), "skill.name")
                return self.of_toml(said, document, head)

    def of_toml(
        self, said: SkillToml, document: Document, head: FrontMatter | None
    ) -> SkillFile | None:
        about, kind = said.skill, said.runtime.type
        instructions = head.body if head else said.prompt_context or self.context()
        described = _text(head.data.get("description")) if head else ""
        description = about.description or described[:LONGEST_DESCRIPTION]
        if not description:
            what = "expected what the skill is for, got nothing"
            place = document.place(("skill", "description"))
            self.problems.append(Problem(place, "skill.description", what))
        return SkillFile(
            name=about.name,
            description=description,
            version=about.version,
            author=about.author,
            license=about.license,
            tags=about.tags,
            instructions=instructions,
            runtime=None if kind == "promptonly" else kind,
            entry=said.runtime.entry,
            tools=tuple(_tools(document.data)),
            wishes=said.requirements.tools,
            capabilities=said.requirements.capabilities,
            variables=tuple(_variables(said)),
            extra=dict(head.data) if head else {},
            notes=tuple(self.notes),
        )

    def context(self) -> str:
        if not (self.folder / CONTEXT).is_file():
            return ""
        match read_text(self.folder / CONTEXT, CONTEXT):
            case Problem() as problem:
                self.problems.append(problem)
                return ""
            case text:
                return text.strip("\n")

    def check_entry(self, said: SkillToml, document: Document) -> None:
        runtime = said.runtime
        if runtime.type == "promptonly":
            if said.tools.provided:
                what = "expected python, node or shell, which runs the tools, got promptonly"
                self.add(document, ("runtime", "type"), what)
            return
        if not runtime.entry or not (self.folder / runtime.entry).is_file():
            what = f"expected a file of the skill's folder, got {shown(runtime.entry or None)}"
            self.add(document, ("runtime", "entry"), what)

    def check_tools(self, said: SkillToml, document: Document) -> None:
        seen: set[str] = set()
        for number, tool in enumerate(said.tools.provided):
            if tool.name in seen:
                what = f"expected each name once, got {shown(tool.name)} twice"
                self.add(document, ("tools", "provided", number, "name"), what)
            seen.add(tool.name)

    def add(self, document: Document, key: tuple[str | int, ...], what: str) -> None:
        self.problems.append(Problem(document.place(key), spell(key, document.data), what))

    def misnamed(self, name: str, place: Place, key: str) -> None:
        if self.placed and name != self.name:
            what = f"expected the name of its folder, {shown(self.name)}, got {shown(name)}"
            self.notes.append(Problem(place, key, what))


@dataclass(frozen=True, slots=True)
class _Table:
    """The head of a `SKILL.md`, key by key."""

    file: str
    head: FrontMatter
    reading: _Reading

    def named(self) -> str:
        name = self.head.data.get("name")
        if isinstance(name, str) and _NAME.match(name) and len(name) <= LONGEST_NAME:
            self.reading.misnamed(name, self.place("name"), "name")
            return name
        what = "expected a name of at most 64 lower-case letters, digits, - and _, got "
        self.problem("name", what + shown(name))
        return ""

    def described(self) -> str:
        said = self.head.data.get("description")
        text = " ".join(said.split()) if isinstance(said, str) else ""
        if not text:
            self.problem("description", f"expected what the skill is for, got {shown(said)}")
        elif len(text) > LONGEST_DESCRIPTION:
            what = f"expected at most {LONGEST_DESCRIPTION} characters, got {len(text)}"
            self.problem("description", what)
        return text

    def text(self, key: str, longest: int = LONGEST_DESCRIPTION) -> str:
        """Read a text that nothing depends on; one that is odd is noted and cut."""
        text = _text(self.head.data.get(key))
        if len(text) > longest:
            what = f"expected at most {longest} characters, got {len(text)}"
            self.reading.notes.append(Problem(self.place(key), key, what))
        return text[:longest]

    def metadata(self) -> Mapping[str, Any]:
        return _mapping(self.head.data.get("metadata"))

    def claw(self) -> Mapping[str, Any]:
        """What is said to the family of programs that came first."""
        found = (self.metadata().get(name) for name in _FAMILY)
        return next((one for one in found if _is_mapping(one)), dict[str, Any]())

    def extra(self) -> dict[str, Any]:
        return {key: value for key, value in self.head.data.items() if key not in _READ}

    def place(self, key: str) -> Place:
        return Place(self.file, self.head.lines.get((key,), 1))

    def problem(self, key: str, what: str) -> None:
        self.reading.problems.append(Problem(self.place(key), key, what))


_READ: Final = frozenset(
    {"name", "description", "version", "author", "license", "compatibility", "tags"}
    | {"allowed-tools"}
)


def _text(value: object) -> str:
    """Read a text; a version may have been taken for a number."""
    if isinstance(value, str):
        return value.strip()
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _words(value: object) -> tuple[str, ...]:
    """Read words: as a list, or in one text, where blanks in brackets part nothing."""
    if isinstance(value, list):
        return tuple(filter(None, map(_text, cast("list[object]", value))))
    return tuple(_WORDS.findall(value)) if isinstance(value, str) else ()


def _is_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if _is_mapping(value) else {}


def _needed(requires: Mapping[str, Any], claw: Mapping[str, Any]) -> Iterator[SkillVariable]:
    names = dict.fromkeys((*_words(requires.get("env")), *_words(claw.get("primaryEnv"))))
    for name in names:
        if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            yield SkillVariable(name=name, env=name, required=True)


def _tools(data: Mapping[str, Any]) -> Iterator[SkillTool]:
    """Take the tools as they were written: what was frozen to be checked is no JSON."""
    provided: Sequence[Mapping[str, Any]] = _mapping(data.get("tools")).get("provided", ())
    for one in provided:
        yield SkillTool(
            name=one["name"],
            description=one.get("description", ""),
            input_schema=one.get("input_schema", {"type": "object"}),
        )


def _variables(said: SkillToml) -> Iterator[SkillVariable]:
    for name, one in said.config.items():
        default = None if one.default is None else _written(one.default)
        yield SkillVariable(
            name=name,
            description=one.description,
            env=one.env or "",
            default=default,
            required=one.required,
        )


def _written(value: str | float | bool) -> str:  # noqa: FBT001 - a value, not a switch
    return str(value).lower() if isinstance(value, bool) else str(value)
