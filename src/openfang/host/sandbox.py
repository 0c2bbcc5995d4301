"""A child in a sandbox of bubblewrap's: what it may see and write, and the command line for that.

Every namespace is the child's own. The first process of its process namespace dies with bubblewrap,
bubblewrap dies with us, and whatever the child has started dies with that first process. Pure;
`host.reach` finds out what to show, `host.backends` what the machine allows.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from openfang.core.values import dataclass
from openfang.host.bridge import bridged

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from openfang.host.users import Stage

Mode: TypeAlias = Literal["auto", "required", "off"]

_TMP: Final = Path("/tmp")  # noqa: S108 - the name inside; behind it is the child's own folder
NAMESPACES: Final = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
)
_BINDS: Final = ("--bind", "--ro-bind")
_PUBLIC: Final = tuple(
    map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/dev", "/nix", "/gnu"))
)
NO_NESTING: Final = "--disable-userns"


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """The program, what it can do here, and whether we can make networks without it.

    `filters` says whether system calls can be filtered: this processor's numbers are known. `users`
    says whether each child can have a user of its own: we are root, and the kernel can do it.
    """

    program: str
    options: tuple[str, ...] = ()
    makes_networks: bool = True
    filters: bool = True
    users: bool = False


@dataclass(frozen=True, slots=True)
class Mount:
    """A path of this machine, and where the child finds it."""

    source: Path
    place: Path
    writable: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link that the child finds."""

    target: str
    place: Path


@dataclass(frozen=True, slots=True)
class Mask:
    """A path that the child finds empty, even inside of what it may see."""

    path: Path
    folder: bool = True


@dataclass(frozen=True, slots=True)
class Handed:
    """A network that we made: the child inherits it, and its way out was handed to us."""


@dataclass(frozen=True, slots=True)
class Bridged:
    """A network that bubblewrap makes, with a forwarder to the proxy's unix socket inside."""

    unix_socket: Path


@dataclass(frozen=True, slots=True)
class Local:
    """This machine's own network, of which the child reaches the proxy's port alone."""

    port: int


Network: TypeAlias = Handed | Bridged | Local | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """What a child may reach. Paths are whole and free of symlinks, but for a mount's place.

    `home` and `tmp` are its own, and writable. A mask wins over every mount around it, and loses to
    a mount of exactly that path or below. `cwd` counts where the child can see it. `user` is who it
    is to run as, where we may choose.
    """

    home: Path
    tmp: Path
    cwd: Path
    mounts: tuple[Mount, ...] = ()
    links: tuple[Link, ...] = ()
    masks: tuple[Mask, ...] = ()
    network: Network = None
    user: int | None = None

    @property
    def start(self) -> Path:
        """The folder to start in; one that the child cannot see is exchanged for its home."""
        mounted = [mount.place for mount in (*self.mounts, *_own(self))]
        shown = _innermost(mounted, self.cwd)
        hidden = _innermost((mask.path for mask in self.masks), self.cwd)
        return self.cwd if shown and shown >= hidden else self.home


def within(path: Path, folder: Path) -> bool:
    """Whether a path is a folder or lies in it; several times faster than pathlib's own."""
    return path.parts[: len(folder.parts)] == folder.parts


def handed_over(confinement: Confinement) -> frozenset[Path]:
    """Give what a child under a user of its own has to be handed: all but everybody's."""
    words = (place for place in _places(confinement) if place[0] in _BINDS)
    sources = (Path(place[1]) for place in words)
    return frozenset(path for path in sources if not any(within(path, top) for top in _PUBLIC))


def command_line(
    confinement: Confinement,
    argv: Sequence[str],
    bubblewrap: Bubblewrap,
    *,
    seccomp: int | None = None,
    stage: Stage | None = None,
) -> tuple[str, ...]:
    """Give the command that starts `argv` confined. Nothing secret is in it: variables are not."""
    network = () if isinstance(confinement.network, Handed) else ("--unshare-net",)
    places = [_moved(place, stage) for place in _places(confinement)]
    # Whoever it is outside, inside it is who we are.
    user = ("--uid", "0", "--gid", "0") if stage else ()
    return (
        bubblewrap.program,
        *NAMESPACES,
        *user,
        *bubblewrap.options,
        *network,
        *(() if seccomp is None else ("--seccomp", str(seccomp))),
        *(word for place in places for word in place),
        *(word for place in _empty(places) for word in ("--remount-ro", place)),
        *("--chdir", str(confinement.start)),
        "--",
        *_inside(argv, confinement.network),
    )


def _moved(place: tuple[str, ...], stage: Stage | None) -> tuple[str, ...]:
    if stage is None or place[0] not in _BINDS:
        return place
    bind, source, there = place
    return (bind, str(stage.place(Path(source))), there)


def _inside(argv: Sequence[str], network: Network) -> Sequence[str]:
    return bridged(argv, network.unix_socket) if isinstance(network, Bridged) else argv


@lru_cache(16)
def _places(confinement: Confinement) -> tuple[tuple[str, ...], ...]:
    """Order what is mounted: outer before inner; of two at one place, the last one named."""
    mounts = {mount.place: mount for mount in (*confinement.mounts, *_own(confinement))}
    shown = dict[Path, Mount]()
    for place in sorted(mounts, key=_depth):
        if _is_needed(mounts[place], shown, confinement.masks):
            shown[place] = mounts[place]
    links = (*confinement.links, Link(str(confinement.tmp), _TMP))
    words = {link.place: _link(link) for link in links if not _shown(link, shown)}
    masked = dict(_masked(shown, confinement.masks))
    words |= dict(_pinned(shown, masked))
    words |= masked
    words |= {place: _bind(mount) for place, mount in shown.items()}
    words[Path("/proc")] = ("--proc", "/proc")
    words[Path("/dev")] = ("--dev", "/dev")
    return tuple(words[place] for place in sorted(words, key=_depth))


def _depth(place: Path) -> int:
    return len(place.parts)


def _empty(places: Iterable[Sequence[str]]) -> Iterator[str]:
    """Give what lies on no disk: what is written there would be lost, so nobody may."""
    mounted = set[str]()
    for place in places:
        mounted.add(place[-1])
        if place[0] == "--tmpfs":
            yield place[-1]
    if "/" not in mounted:
        yield "/"


def _own(confinement: Confinement) -> Iterator[Mount]:
    """Give the folders of the child's own. A /tmp that was asked for by name is the real one."""
    own = [Mount(path, path, writable=True) for path in (confinement.home, confinement.tmp)]
    if isinstance(confinement.network, Bridged):
        own.append(Mount(confinement.network.unix_socket, confinement.network.unix_socket))
    yield from own
    places = [mount.place for mount in (*confinement.mounts, *own)]
    # Where nothing has to be mounted inside of it a link will do, and a link costs no time.
    asked = any(within(_TMP, place) for place in places)
    if not asked and any(within(place, _TMP) for place in places):
        yield Mount(confinement.tmp, _TMP, writable=True)


def _bind(mount: Mount) -> tuple[str, ...]:
    return ("--bind" if mount.writable else "--ro-bind", str(mount.source), str(mount.place))


def _link(link: Link) -> tuple[str, ...]:
    return ("--symlink", link.target, str(link.place))


def _masked(
    shown: Mapping[Path, Mount], masks: Iterable[Mask]
) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Find the masks inside of each mount, where the child would find what they hide."""
    outer_first = sorted(masks, key=lambda mask: _depth(mask.path))
    for mount in shown.values():
        hidden = set[Path]()
        for mask in outer_first:
            if mask.path == mount.source or not within(mask.path, mount.source):
                continue
            place = mount.place / mask.path.relative_to(mount.source)
            around = _around(place, shown, hidden)
            if around is mount:
                hidden.add(place)
                yield place, _mask(mask, place)


def _mask(mask: Mask, place: Path) -> tuple[str, ...]:
    return ("--tmpfs", str(place)) if mask.folder else ("--ro-bind", "/dev/null", str(place))


def _around(
    place: Path, shown: Mapping[Path, Mount], hidden: Collection[Path] = ()
) -> Mount | None:
    """Give the mount that the child would find a place in; nothing, where that is hidden."""
    for folder in place.parents:
        if folder in shown:
            return shown[folder]
        if folder in hidden:
            return None
    return None


def _pinned(
    shown: Mapping[Path, Mount], masked: Collection[Path]
) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Lay every folder above a place of its own, up to where the child may write, onto itself.

    The child cannot rename what something is mounted on. Or it could move what lies around a mask,
    or around what it may only read, and find it unguarded at its next start.
    """
    for place in (*masked, *shown):
        mount = _around(place, shown, masked)
        if mount is None or not mount.writable or not _same(mount, place, shown):
            continue
        for folder in place.parents[: len(place.parts) - len(mount.place.parts) - 1]:
            pinned = mount.source / folder.relative_to(mount.place)
            yield folder, _bind(Mount(pinned, folder, writable=True))


def _same(outer: Mount, place: Path, shown: Mapping[Path, Mount]) -> bool:
    """Whether a place is what lies there in the outer mount, and not something from elsewhere."""
    inner = shown.get(place)
    return inner is None or inner.source == outer.source / place.relative_to(outer.place)


def _is_needed(mount: Mount, shown: Mapping[Path, Mount], masks: Iterable[Mask]) -> bool:
    """Whether no outer mount shows the same already; each mount costs time at every start."""
    outer = _around(mount.place, shown)
    if outer is None or any(within(mount.place, mask.path) for mask in masks):
        return True
    # A link on the way to this place is seen there, and leads to where the source is mounted.
    linked = outer.source == outer.place and mount.source != mount.place
    return not (linked or _shows(outer, mount))


def _shows(outer: Mount, inner: Mount) -> bool:
    there = outer.source / inner.place.relative_to(outer.place)
    return there == inner.source and outer.writable == inner.writable


def _shown(link: Link, places: Iterable[Path]) -> bool:
    return any(within(link.place, place) for place in places)


def _innermost(places: Iterable[Path], path: Path) -> int:
    around = (len(place.parts) for place in places if within(path, place))
    return max(around, default=0)
