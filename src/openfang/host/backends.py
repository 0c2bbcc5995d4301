"""What this machine can confine a child with, what is chosen of it, and what really holds."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from openfang.core.values import dataclass
from openfang.host.fallback import fence_version, fenced
from openfang.host.filters import afresh, filter_file
from openfang.host.machine import Layer, succeeds
from openfang.host.network import can_make_networks
from openfang.host.process import LaunchFailed, in_turn
from openfang.host.sandbox import (
    NAMESPACES,
    NO_NESTING,
    Bubblewrap,
    command_line,
    handed_over,
)
from openfang.host.users import can_change_users, staged

if TYPE_CHECKING:
    from openfang.host.process import Launch
    from openfang.host.sandbox import Confinement, Mode, Network
    from openfang.host.witness import Sight

_LAYERS: Final = (
    *("backend", "files", "processes", "messages", "network", "privileges"),
    *("nested namespaces", "system calls", "own user", "resources"),
)
_UNSEEN: Final = "the child could not be looked at"
_INSTALL: Final = "install bubblewrap (apt install bubblewrap), and check: openfang doctor"
_SYSTEM: Final = "/usr/bin:/bin"
_TRIAL: Final = (
    *("--unshare-net", "--ro-bind", "/", "/"),
    *("--proc", "/proc", "--dev", "/dev", "--", "/bin/true"),
)


class SandboxMissing(LaunchFailed):
    """The program has to be sandboxed, and this machine cannot do it."""

    code = "sandbox_missing"


@dataclass(frozen=True, slots=True)
class Landlocked:
    """The degraded sandbox, by Landlock of this version, and why there is no better one here."""

    version: int
    reason: str


@dataclass(frozen=True, slots=True)
class Missing:
    """Why nothing can be sandboxed here."""

    reason: str


Available: TypeAlias = Bubblewrap | Landlocked | Missing


@dataclass(frozen=True, slots=True)
class Bare:
    """The child runs without a sandbox; `reason` is for the log and for whoever asks."""

    reason: str


Chosen: TypeAlias = Bubblewrap | Landlocked | Bare


def choose(mode: Mode, found: Available) -> Chosen:
    """Say how a child runs: `auto` takes what there is, `required` no less than all of it."""
    if mode == "off":
        return Bare('the configuration says sandbox = "off"')
    if mode == "required" and (lacking := _lacking(found)):
        raise SandboxMissing(
            f'sandbox = "required", and there is no whole sandbox here: {lacking}',
            way_out=f'{_INSTALL}; or set sandbox = "auto" for this server',
        )
    if isinstance(found, Missing):
        return Bare(f"there is no sandbox here: {found.reason}")
    return found


def _lacking(found: Available) -> str:
    """Say what is missing of the whole sandbox: bubblewrap, and a filter of system calls."""
    match found:
        case Missing(reason):
            return reason
        case Landlocked(reason=reason):
            return f"{reason}, and Landlock alone is a degraded one"
        case Bubblewrap(filters=False):
            return "system calls cannot be filtered on this processor"
        case Bubblewrap():
            return ""


def sandboxed(launch: Launch, confinement: Confinement, chosen: Bubblewrap | Landlocked) -> Launch:
    """Start the same in a sandbox; its program has to be given by the whole path. Blocks."""
    if isinstance(chosen, Bubblewrap):
        return _confined(launch, confinement, chosen)
    return fenced(uncounted(launch), confinement, chosen.version)


def _confined(launch: Launch, confinement: Confinement, bubblewrap: Bubblewrap) -> Launch:
    file = filter_file() if bubblewrap.filters else None
    user = confinement.user if bubblewrap.users else None
    stage = staged(user, handed_over(confinement)) if user else None
    if stage is None:
        launch = _counted_inside(launch)
    return replace(
        launch,
        argv=command_line(confinement, launch.argv, bubblewrap, seccomp=file, stage=stage),
        prepare=in_turn(
            afresh(file) if file else None, launch.prepare, stage.becoming() if stage else None
        ),
        files=(*launch.files, *([file] if file else [])),
    )


def uncounted(launch: Launch) -> Launch:
    """Leave the limit of processes out: the child is counted with all that its user runs."""
    return replace(launch, limits=replace(launch.limits, processes=None))


def _counted_inside(launch: Launch) -> Launch:
    """Limit the processes where the child is counted alone: in its own user namespace."""
    most, program = launch.limits.processes, shutil.which("prlimit", path=_SYSTEM)
    if most is None or program is None:
        return uncounted(launch)
    return replace(uncounted(launch), argv=(program, f"--nproc={most}", "--", *launch.argv))


def active_layers(chosen: Chosen, network: Network, sight: Sight | None) -> tuple[Layer, ...]:
    """Say what stands between a running child and the machine, and what does not.

    What was asked for counts only as far as it was seen; of a child that could not be looked at
    nothing is claimed.
    """
    if isinstance(chosen, Bare):
        return tuple(Layer(name, present=False, detail=chosen.reason) for name in _LAYERS)
    if sight is None:
        return tuple(Layer(name, present=False, detail=_UNSEEN) for name in _LAYERS)
    if isinstance(chosen, Bubblewrap):
        found = _in_bubblewrap(chosen, network, sight)
    else:
        found = _behind_a_fence(chosen, network, sight)
    return tuple(Layer(name, *found[name]) for name in _LAYERS)


def _held(present: bool, detail: str) -> tuple[bool, str]:  # noqa: FBT001 - what was seen
    return present, detail if present else "not in force"


def _in_bubblewrap(
    chosen: Bubblewrap, network: Network, sight: Sight
) -> dict[str, tuple[bool, str]]:
    way_out = "none" if network is None else "only the guarded egress"
    return {
        "backend": (True, "bubblewrap"),
        "files": _held("mnt" in sight.own, "a root and a home of its own, by bubblewrap"),
        "processes": _held("pid" in sight.own, "a process namespace of its own"),
        "messages": _held("ipc" in sight.own, "no shared memory or queues with others"),
        "network": _held("net" in sight.own, way_out),
        "nested namespaces": _held(NO_NESTING in chosen.options or sight.filtered, "forbidden"),
        **_of_the_process(sight),
    }


def _behind_a_fence(
    chosen: Landlocked, network: Network, sight: Sight
) -> dict[str, tuple[bool, str]]:
    way_out = "none" if network is None else "only TCP to the port of the guarded egress"
    return {
        "backend": (False, f"degraded: Landlock {chosen.version}, for {chosen.reason}"),
        "files": (True, "only what is listed, by Landlock"),
        "processes": (
            False,
            "it sees others, and what it starts may outlive us",
        ),
        "messages": (False, "shared memory and queues are everybody's"),
        "network": _held(sight.filtered, way_out),
        "nested namespaces": _held(sight.filtered, "forbidden"),
        **_of_the_process(sight),
    }


def _of_the_process(sight: Sight) -> dict[str, tuple[bool, str]]:
    return {
        "privileges": _held(not (sight.capable or sight.may_gain), "none, and none to be gained"),
        "system calls": _held(sight.filtered, "filtered"),
        "own user": _own_user(sight),
        "resources": _resources(sight),
    }


def _own_user(sight: Sight) -> tuple[bool, str]:
    if sight.user == os.geteuid():
        return False, f"it runs as user {sight.user}, as we do"
    return True, f"user {sight.user}, who has nothing else"


def _resources(sight: Sight) -> tuple[bool, str]:
    """Say what bounds it: alone, or together with all that it starts."""
    bounds = sight.bounds
    if bounds.group:
        return True, "memory and processes, of all it starts together, by a cgroup"
    # The kernel does not hold root to a number of processes.
    if bounds.processes and bounds.data and sight.user != 0:
        return True, f"{bounds.processes} processes, {bounds.data >> 20} MiB in each"
    return False, "memory and processes together are not bounded: there is no cgroup to write"


def available() -> Available:
    """Try what a sandbox is made of. Blocks for some tens of milliseconds: ask once."""
    found = _bubblewrap()
    if isinstance(found, Missing) and (version := fence_version()):
        return Landlocked(version, found.reason)
    return found


def _bubblewrap() -> Bubblewrap | Missing:
    program = shutil.which("bwrap")
    if program is None:
        return Missing("bubblewrap is not installed")
    for options in ((NO_NESTING,), ()):
        if succeeds(program, *NAMESPACES, *options, *_TRIAL):
            return Bubblewrap(
                program,
                options,
                makes_networks=can_make_networks(),
                filters=filter_file() is not None,
                users=can_change_users(program, *NAMESPACES, *options, *_TRIAL),
            )
    return Missing("bubblewrap is installed, but may not make namespaces")
