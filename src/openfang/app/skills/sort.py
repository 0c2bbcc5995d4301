"""Skills as one sort of what can be installed: how they are read, put in force and taken out."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar

from anyio import to_thread

from openfang.app.servers.translate import rules_of
from openfang.app.skills.reading import Reading
from openfang.app.skills.settings import values_of
from openfang.config.skills import NO_SETTINGS
from openfang.core.ids import Kind
from openfang.core.news import Listed
from openfang.core.values import dataclass
from openfang.sources.skills.running import Runner
from openfang.sources.skills.source import SkillSource

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from openfang.app.installs.reviews import Described
    from openfang.app.parts import Parts
    from openfang.config.skill_files import SkillFile
    from openfang.config.skills import SkillSettings
    from openfang.core.installs import InstallKind
    from openfang.sources.skills.spec import SkillSpec
    from openfang.storage.installs import Install


@dataclass(slots=True)
class Skills:
    """The skills that are in force, by name."""

    kind: ClassVar[InstallKind] = "skill"
    folder: ClassVar[str] = "skills"
    command: ClassVar[str] = "skills"
    parts: Parts
    running: dict[str, SkillSource] = field(default_factory=dict[str, SkillSource])

    def read(self, folder: Path) -> Described:
        """Read what a folder says of itself."""
        reading = Reading.of(folder)
        settings = self._settings(reading.said.name)
        return reading.described(self.parts.home.path, settings, rules_of(self.parts.config))

    async def put(self, install: Install, folder: Path) -> None:
        """Offer a skill, or what it is now."""
        reading = await to_thread.run_sync(Reading.of, folder)
        spec = reading.spec(self.parts.home.path, self._settings(install.id))
        known = self.running.get(install.id)
        if known is not None and known.spec == spec:
            return
        self.running[install.id] = source = self._source(reading.said, spec)
        self.parts.add(Kind.EXTENSION, source)
        self.parts.news.publish(Listed.PROMPTS)

    def _source(self, said: SkillFile, spec: SkillSpec) -> SkillSource:
        parts = self.parts

        async def values() -> Mapping[str, str]:
            return await to_thread.run_sync(values_of, parts, said)

        runner = Runner(spec, parts.confined, values)
        return SkillSource(runner, parts.pipeline.stamper.check, rules_of(parts.config))

    async def drop(self, id_: str) -> None:
        """Take a skill away."""
        if self.running.pop(id_, None) is not None:
            self.parts.remove(Kind.EXTENSION, id_)
            self.parts.news.publish(Listed.PROMPTS)

    async def settled(self, id_: str) -> None:
        """It is known at once what a skill offers."""

    def state(self, id_: str) -> Mapping[str, Any]:
        """Say how it is: nothing of a skill runs between two calls."""
        return {"how": "ready" if id_ in self.running else "idle"}

    def _settings(self, name: str) -> SkillSettings:
        return self.parts.config.skills.get(name, NO_SETTINGS)
