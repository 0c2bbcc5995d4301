"""The files for several nodes: what they run is run here, on a real Postgres, in no container."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from secrets import token_bytes
from typing import TYPE_CHECKING, Any, cast

import httpx
import pytest
import yaml

from openfang.config.load import load

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

pytestmark = pytest.mark.requirement("C13.3")
PACKAGING = Path(__file__).parents[1] / "packaging"
KUBERNETES = PACKAGING / "kubernetes"
SCRIPTS = {name: (KUBERNETES / name).read_text() for name in ("first.sh", "join.sh")}
_OURS = {"OPENFANG_NODE", "PGPASSWORD", "POD"}


def compose() -> dict[str, Any]:
    return yaml.safe_load((PACKAGING / "compose.yaml").read_text())


def resources() -> list[dict[str, Any]]:
    named = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())["resources"]
    return [one for name in named for one in yaml.safe_load_all((KUBERNETES / name).read_text())]


def of_kind(kind: str) -> dict[str, Any]:
    return next(one for one in resources() if one["kind"] == kind)


def pods() -> list[dict[str, Any]]:
    return [one["spec"]["template"]["spec"] for one in map(of_kind, ("Job", "StatefulSet"))]


def containers() -> Iterator[dict[str, Any]]:
    for pod in pods():
        yield from [*pod.get("initContainers", ()), *pod["containers"]]


@contextmanager
def serving(environ: dict[str, str]) -> Generator[str]:
    command = ["openfang", "start", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            said = next(line for line in process.stdout if "http://" in line)
            found = re.search(r"http://127\.0\.0\.1:\d+", said)
            assert found is not None
            yield found[0]
        finally:
            process.terminate()
            process.stdout.read()


def sh(script: str, environ: dict[str, str]) -> None:
    done = subprocess.run(
        ["/bin/sh", str(KUBERNETES / script)],
        env=environ,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_scripts_make_a_first_home_and_a_node_that_the_probes_and_the_others_reach(
    tmp_path: Path, empty_postgres: str
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "master.key").write_bytes(token_bytes(32))
    environ = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "DATABASE_URL": empty_postgres,
        "SHARED": str(shared),
        "CONFIG": str(KUBERNETES / "config.toml"),
        "NODE_ADDRESS": "http://openfang-0.openfang-nodes:50051",
        "OPENFANG_HOME": str(tmp_path / "volume/home"),
    }
    for _ in range(2):
        sh("first.sh", environ)
    sh("join.sh", environ)
    home = Path(environ["OPENFANG_HOME"])
    config = load(home, {})
    assert (config.storage.url, config.cluster.address) == (
        empty_postgres,
        environ["NODE_ADDRESS"],
    )
    assert (home / "master.key").read_bytes() == (shared / "master.key").read_bytes()
    with serving({**environ, "OPENFANG_NODE": "openfang-0"}) as address:
        for host in ("localhost", "openfang-0.openfang-nodes"):
            for path in _probed():
                answer = httpx.get(address + path, headers={"Host": host})
                assert answer.status_code == 200, answer.text
        key = (home / "key").read_text().strip()
        status = httpx.get(f"{address}/api/status", headers={"Authorization": f"Bearer {key}"})
        assert status.json()["node"] == "openfang-0"


def _probed() -> set[str]:
    node = of_kind("StatefulSet")["spec"]["template"]["spec"]["containers"][0]
    probes = [node[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")]
    assert all(one["httpHeaders"] == [{"name": "Host", "value": "localhost"}] for one in probes)
    return {one["path"] for one in probes}


def test_every_variable_that_is_set_is_one_that_somebody_reads() -> None:
    for container in containers():
        told = "".join(container.get("command", ()))
        read = next((text for name, text in SCRIPTS.items() if name in told), "")
        for one in container["env"]:
            assert one["name"] in _OURS or f"${one['name']}" in read or f"${{{one['name']}" in read
    for name, service in compose()["services"].items():
        if name.startswith("node-") or name == "first":
            read = SCRIPTS["first.sh" if name == "first" else "join.sh"]
            for one in service["environment"]:
                assert one in _OURS or f"${one}" in read


def test_nothing_runs_as_root_or_may_become_it() -> None:
    for pod in pods():
        assert pod["securityContext"]["runAsNonRoot"]
        assert not pod["automountServiceAccountToken"]
    for container in containers():
        held = container["securityContext"]
        assert (held["allowPrivilegeEscalation"], held["readOnlyRootFilesystem"]) == (False, True)
        assert held["capabilities"] == {"drop": ["ALL"]}


def test_a_node_has_the_time_to_drain() -> None:
    config = (KUBERNETES / "config.toml").read_text()
    drained = int(cast("re.Match[str]", re.search(r"drain_secs = (\d+)", config))[1])
    pod = of_kind("StatefulSet")["spec"]["template"]["spec"]
    paused = int(pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] >= paused + drained + 15
    assert int(compose()["services"]["node-a"]["stop_grace_period"][:-1]) >= drained + 15


def test_what_a_file_names_is_in_another() -> None:
    services, cfg = compose()["services"], (PACKAGING / "haproxy.cfg").read_text()
    nodes = {name for name in services if name.startswith("node-")}
    assert set(re.findall(r"server (\S+) \1:50051", cfg)) == nodes
    for name in nodes:
        assert services[name]["environment"]["OPENFANG_NODE"] == name
    for published in [port for one in services.values() for port in one.get("ports", ())]:
        assert published.startswith("127.0.0.1:")
    for one in compose()["configs"].values():
        assert (PACKAGING / one["file"]).is_file()
    made = of_kind("StatefulSet")["spec"]
    claim = of_kind("PersistentVolumeClaim")["metadata"]["name"]
    assert claim == f"{made['volumeClaimTemplates'][0]['metadata']['name']}-openfang-0"
    assert made["serviceName"] in {one["metadata"]["name"] for one in resources()}
    labels = made["template"]["metadata"]["labels"]
    for one in resources():
        selector = one["spec"].get("selector")
        if one["kind"] in {"Service", "PodDisruptionBudget"}:
            assert selector.get("matchLabels", selector).items() <= labels.items()
