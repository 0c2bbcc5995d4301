"""From a name to addresses, by the system's resolver. None of them is checked here."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]


async def system_resolve(host: str, port: int) -> Sequence[str]:
    """Ask the system's resolver."""
    loop = asyncio.get_running_loop()
    answers = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(answer[4][0]) for answer in answers]
