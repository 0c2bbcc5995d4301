"""A circuit breaker: after failures in a row calls fail at once, then one probe decides."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeAlias

from openfang.core.values import dataclass

_KEYS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerLimits:
    """How many failures in a row open it, and for how many seconds."""

    failures: int = 5
    rest: float = 30.0


@dataclass(frozen=True, slots=True)
class Closed:
    """Calls pass; `failures` in a row so far."""

    failures: int = 0


@dataclass(frozen=True, slots=True)
class Open:
    """Calls are refused with `error` until the moment `until`."""

    until: float
    error: str


@dataclass(frozen=True, slots=True)
class HalfOpen:
    """One probe is out, the others are refused. A probe not heard of by `until` is lost."""

    until: float
    error: str


State: TypeAlias = Closed | Open | HalfOpen
CLOSED = Closed()
DEFAULTS = BreakerLimits()


@dataclass(frozen=True, slots=True)
class Broken:
    """Refused, with the last error and the seconds until the next probe."""

    error: str
    retry_after: float


def admit(state: State, now: float, limits: BreakerLimits = DEFAULTS) -> State | Broken:
    """Let a call pass into the returned state, or refuse it."""
    match state:
        case Closed():
            return state
        case Open(until, error) | HalfOpen(until, error) if now < until:
            return Broken(error, until - now)
        case Open(_, error) | HalfOpen(_, error):
            return HalfOpen(now + limits.rest, error)


def succeeded(state: State) -> State:
    """Take in a success. While open only a probe counts: older calls prove nothing new."""
    return state if isinstance(state, Open) else CLOSED


def failed(state: State, error: str, now: float, limits: BreakerLimits = DEFAULTS) -> State:
    """Take in a failure. While open, calls that began earlier do not prolong the rest."""
    match state:
        case Closed(failures) if failures + 1 < limits.failures:
            return Closed(failures + 1)
        case Open(until, _):
            return Open(until, error)
        case _:
            return Open(now + limits.rest, error)


def abandoned(state: State, now: float) -> State:
    """Take in a call that ended without a verdict, so that the next one is the probe."""
    return Open(now, state.error) if isinstance(state, HalfOpen) else state


def revived(state: State, now: float) -> State:
    """Take in that the other side was begun anew: what broke is gone, the next call is a probe."""
    return Open(now, state.error) if isinstance(state, Open) else state


class Breakers:
    """One breaker per key; what is closed and without failures takes no memory."""

    __slots__ = ("_capacity", "_limits", "_states")

    def __init__(self, limits: BreakerLimits = DEFAULTS, *, capacity: int = _KEYS) -> None:
        self._limits = limits
        self._capacity = capacity
        self._states: OrderedDict[str, State] = OrderedDict()

    def configure(self, limits: BreakerLimits) -> None:
        """Judge by other limits from now on; what was counted stays."""
        self._limits = limits

    @property
    def size(self) -> int:
        """How many keys are not simply closed."""
        return len(self._states)

    def state(self, key: str) -> State:
        """Show where a key's breaker stands."""
        return self._states.get(key, CLOSED)

    def admit(self, key: str, now: float) -> Broken | None:
        """Let a call pass, as the probe if one is due, or refuse it."""
        state = self._states.get(key)
        if state is None:
            return None
        match admit(state, now, self._limits):
            case Broken() as broken:
                return broken
            case admitted:
                self._keep(key, admitted)
                return None

    def look(self, key: str, now: float) -> Broken | None:
        """Say what `admit` would answer, and change nothing."""
        answer = admit(self.state(key), now, self._limits)
        return answer if isinstance(answer, Broken) else None

    def succeeded(self, key: str) -> None:
        """Report that a call of this key went well."""
        state = self._states.get(key)
        if state is not None:
            self._keep(key, succeeded(state))

    def failed(self, key: str, error: str, now: float) -> None:
        """Report that a call of this key failed, and why."""
        self._keep(key, failed(self.state(key), error, now, self._limits))

    def abandoned(self, key: str, now: float) -> None:
        """Report that a call of this key was cancelled before it could tell."""
        state = self._states.get(key)
        if state is not None:
            self._keep(key, abandoned(state, now))

    def revived(self, key: str, now: float) -> None:
        """Report that what this key stands for was begun anew."""
        state = self._states.get(key)
        if state is not None:
            self._keep(key, revived(state, now))

    def _keep(self, key: str, state: State) -> None:
        if state == CLOSED:
            self._states.pop(key, None)
            return
        self._states[key] = state
        self._states.move_to_end(key)
        if len(self._states) > self._capacity:
            self._states.popitem(last=False)
