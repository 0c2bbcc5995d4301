"""A skill as a source of tools: its text is read when somebody needs it, its programs are run."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from anyio import to_thread

from openfang.core.errors import OpenFangError, SourceFailed
from openfang.core.ids import Kind, tool_id
from openfang.core.results import error_result, text_result
from openfang.core.values import dataclass
from openfang.host.files import Folder
from openfang.host.folders import all_files_of
from openfang.sources.skills import tools as offered
from openfang.sources.skills.running import Errand, answer_of, output_of
from openfang.sources.skills.spec import interpreter_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from openfang.core.calls import Admitted
    from openfang.core.results import Result
    from openfang.core.tools import Tool
    from openfang.registry.rules import Rules
    from openfang.sources.skills.running import Runner
    from openfang.sources.skills.spec import SkillSpec

LONGEST_FILE: Final = 256 * 1024
_MOST_LISTED: Final = 200


@dataclass(frozen=True, slots=True)
class SkillSource:
    """Offers one skill. What it cannot do is an answer in words that a model can act on."""

    runner: Runner
    check: Callable[[Admitted], None]
    rules: Rules

    @property
    def spec(self) -> SkillSpec:
        """The skill."""
        return self.runner.spec

    @property
    def name(self) -> str:
        """The skill's name."""
        return self.spec.name

    @property
    def read_by(self) -> str:
        """The id of the tool that reads it."""
        return tool_id(Kind.EXTENSION, self.name, offered.READ)

    def tools(self) -> Sequence[Tool]:
        """List what it offers."""
        return list(offered.tools_of(self.spec, self.rules))

    async def execute(self, admitted: Admitted) -> Result:
        """Run a call that carries its stamp."""
        self.check(admitted)
        try:
            return await self._done(admitted)
        except SourceFailed:
            raise
        except OpenFangError as error:
            advice = f" ({error.way_out})" if error.way_out else ""
            return error_result(f"Error: {error.message}{advice}")

    async def _done(self, admitted: Admitted) -> Result:
        match admitted.tool.id.rpartition(":")[2]:
            case offered.READ:
                return await self._read(str(admitted.call.arguments.get("file", "")))
            case offered.RUN:
                return await self._run(admitted)
            case _:
                return await self._tool(admitted)

    async def _read(self, file: str) -> Result:
        if not file:
            return text_result("\n\n".join(filter(None, (self.spec.instructions, self._listed()))))
        data = await self._accepted(file)
        try:
            return text_result(data.decode())
        except UnicodeDecodeError:
            return error_result(f"{file} holds no text: {len(data)} bytes.")

    def _listed(self) -> str:
        """Name the other files: the instructions speak of them by these names."""
        others = [path for path in self.spec.files if "/" in path or path not in _ITSELF]
        if not others:
            return ""
        more = len(others) - _MOST_LISTED
        rest = [f"- and {more} more"] if more > 0 else []
        lines = [f"- {path}" for path in others[:_MOST_LISTED]]
        return "\n".join(["Files of this skill, for `file`:", *lines, *rest])

    async def _accepted(self, file: str) -> bytes:
        """Read a file of the folder, and see that it is the one that was accepted."""
        data = await to_thread.run_sync(self._bytes, file)
        if sha256(data).hexdigest() != self.spec.files.get(_plain(file)):
            raise SourceFailed(
                f"{file} of the skill {self.name} is not the file that was accepted.",
                way_out=f"openfang skills show {self.name}",
            )
        return data

    async def _unchanged(self) -> None:
        """See that all its files are those that were accepted: a program reads others of them."""
        found = await to_thread.run_sync(all_files_of, self.spec.folder)
        if {one.path: one.sha256 for one in found} != self.spec.files:
            raise SourceFailed(
                f"The files of the skill {self.name} are not those that were accepted.",
                way_out=f"openfang skills show {self.name}",
            )

    def _bytes(self, file: str) -> bytes:
        folder = Folder(self.spec.folder)
        try:
            return folder.read(file, limit=LONGEST_FILE)
        finally:
            folder.close()

    async def _run(self, admitted: Admitted) -> Result:
        arguments, spec = admitted.call.arguments, self.spec
        script = str(arguments["script"])
        interpreter = interpreter_of(script)
        if interpreter is None or script not in spec.scripts:
            return error_result(f"{script} is none of the scripts of {self.name}.")
        await self._unchanged()
        errand = Errand(
            interpreter=interpreter,
            file=script,
            arguments=tuple(map(str, arguments.get("args", ()))),
            stdin=str(arguments.get("stdin", "")).encode(),
            cwd=spec.workspace,
        )
        return output_of(await self.runner.run(admitted, errand))

    async def _tool(self, admitted: Admitted) -> Result:
        spec, tool = self.spec, admitted.tool.name
        if spec.runtime is None:
            return error_result(f"Nothing runs {tool} of {self.name}.")
        await self._unchanged()
        asked = {"tool": tool, "input": admitted.call.arguments}
        errand = Errand(
            interpreter=spec.runtime,
            file=spec.entry,
            arguments=(tool,),
            stdin=json.dumps(asked, default=dict).encode(),
            cwd=spec.folder,
        )
        return answer_of(await self.runner.run(admitted, errand))


_ITSELF: Final = frozenset({"SKILL.md", "skill.md", "skill.toml", "prompt_context.md"})


def _plain(path: str) -> str:
    return "/".join(part for part in path.split("/") if part not in {"", "."})
