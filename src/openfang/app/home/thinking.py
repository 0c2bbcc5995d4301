"""What the doctor finds of the models that agents think with: nobody is asked, only looked up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.agents.models.failures import ModelFailed
from openfang.agents.models.providers import is_planner, settled
from openfang.app.agents.minds import needs_file
from openfang.app.agents.reached import Variables, chosen, reached, said_of
from openfang.app.home.checks import Check, ok, warn
from openfang.config.manifests import read_manifests
from openfang.core.errors import OpenFangError
from openfang.host.secrets import MasterKey, SecretStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from openfang.agents.models.providers import Choice
    from openfang.app.home.paths import Home
    from openfang.config.manifest_models import Manifest
    from openfang.config.models import Config

_PROGRAM = "python:"


def of_models(home: Home, config: Config, environ: Mapping[str, str]) -> list[Check]:
    """Look whether the model of each agent has an address and a key. Blocks."""
    manifests, _ = read_manifests(home.path, config.agents.workspace_roots)
    thinking = [one for one in manifests.values() if not one.module.startswith(_PROGRAM)]
    choices = {one.name: _choices(one, config) for one in thinking}
    if not any(choices.values()) or not home.master_key.exists():
        return []
    try:
        store = SecretStore(home.path, MasterKey.open(home.path, keyring=config.secrets.keyring))
        variables = Variables(environ, store)
        found = [
            warn("models", f"{name}: {failure.message}", failure.way_out)
            for name, wanted in choices.items()
            for failure in _failures(wanted, config, variables)
        ]
    except OpenFangError as error:
        return [warn("models", error.message, error.way_out)]
    return found or [ok("models", "each has an address, and a key where it needs one")]


def _choices(manifest: Manifest, config: Config) -> list[Choice]:
    """Name the models of providers that an agent may think with."""
    default = chosen(config.default_model)
    named = [chosen(one) for one in (manifest.model, *manifest.fallback_models)]
    wanted = [settled(one, default) for one in named if not is_planner(one, default)]
    return [one for one in wanted if not needs_file(one, config)]


def _failures(
    choices: list[Choice], config: Config, variables: Mapping[str, str]
) -> Iterator[ModelFailed]:
    for choice in choices:
        try:
            reached(choice, said_of(config, choice.provider), variables)
        except ModelFailed as failure:
            yield failure
