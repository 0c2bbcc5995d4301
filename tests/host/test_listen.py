from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from openfang.core.errors import ConfigError, Conflict
from openfang.host.listen import listen

pytestmark = pytest.mark.requirement("C12.2")


@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("::1", "::1")])
def test_port_zero_picks_one_and_the_address_tells_which(host: str, shown: str) -> None:
    listener = listen(host, 0)
    assert listener.address[0] == shown
    with socket.create_connection(listener.address):
        pass
    listener.close()


def test_localhost_is_one_port_of_both_families() -> None:
    listener = listen("localhost", 0)
    port = listener.address[1]
    for host in ("127.0.0.1", "::1"):
        with socket.create_connection((host, port)):
            pass
    listener.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_a_port_in_use_is_named_with_a_way_out(host: str) -> None:
    first = listen(host, 0)
    with pytest.raises(Conflict, match=f"{first.address[1]} is in use") as caught:
        listen(host, first.address[1])
    assert "api_listen" in caught.value.way_out
    first.close()


def test_a_port_can_be_taken_again_at_once() -> None:
    first = listen("127.0.0.1", 0)
    host, port = first.address
    with socket.create_connection((host, port)) as client:
        first.sockets[0].setblocking(True)  # noqa: FBT003 - the library's signature
        first.sockets[0].accept()[0].close()
        assert client.recv(1) == b""
    first.close()
    listen(host, port).close()


def test_localhost_is_refused_while_a_stranger_has_the_port_of_one_family() -> None:
    stranger = listen("::1", 0)
    with pytest.raises(Conflict, match=r"\[::1\]:\d+ is in use"):
        listen("localhost", stranger.address[1])
    stranger.close()


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(Conflict, match="is not an address of this machine") as caught:
        listen("192.0.2.1", 0)
    assert "--listen 127.0.0.1:0" in caught.value.way_out
    assert "192.0.2.1" not in caught.value.way_out


def test_a_name_is_refused_without_asking_a_resolver() -> None:
    with pytest.raises(ConfigError, match=r"node\.invalid"):
        listen("node.invalid", 0)


def test_a_child_does_not_inherit_the_socket() -> None:
    listener = listen("127.0.0.1", 0)
    assert not any(os.get_inheritable(one.fileno()) for one in listener.sockets)
    listener.close()


_RAISE = """
import resource
from openfang.host.listen import raise_file_limit
resource.setrlimit(resource.RLIMIT_NOFILE, (64, HARD))
print(raise_file_limit(1000), resource.getrlimit(resource.RLIMIT_NOFILE)[0], raise_file_limit(1))
"""


@pytest.mark.parametrize(("hard", "soft"), [(4000, 1512), (700, 700)])
def test_the_limit_of_open_files_is_raised_as_far_as_it_may(hard: int, soft: int) -> None:
    script = _RAISE.replace("HARD", str(hard))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout.split() == [str(soft).encode()] * 3
