"""Package registries of the tests' own, on the loopback: as `npx` and as `uvx` ask them."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping


@dataclass(slots=True)
class Registry:
    """What it has, by path, and what it was asked for."""

    address: str
    pages: dict[str, tuple[str, bytes]] = field(default_factory=dict[str, "tuple[str, bytes]"])
    asked: list[str] = field(default_factory=list[str])

    def publish_npm(self, name: str, version: str, files: Mapping[str, bytes], binary: str) -> None:
        """Offer a package whose one program is `binary`."""
        manifest = {"name": name, "version": version, "bin": {name: binary}}
        packed = _tarball({**files, "package.json": json.dumps(manifest).encode()})
        digest = base64.b64encode(hashlib.sha512(packed).digest()).decode()
        tarball = f"/{name}/-/{name}-{version}.tgz"
        dist = {"tarball": f"{self.address}{tarball}", "integrity": f"sha512-{digest}"}
        versions = {version: {**manifest, "dist": dist}}
        page = {"name": name, "dist-tags": {"latest": version}, "versions": versions}
        self.pages[f"/{name}"] = "application/json", json.dumps(page).encode()
        self.pages[tarball] = "application/octet-stream", packed

    def publish_wheel(self, name: str, version: str, module: bytes) -> None:
        """Offer a package of one module, whose `main` is the program."""
        file = f"{name}-{version}-py3-none-any.whl"
        packed = _wheel(name, version, module)
        digest = hashlib.sha256(packed).hexdigest()
        link = f'<!DOCTYPE html><a href="/files/{file}#sha256={digest}">{file}</a>'
        self.pages[f"/simple/{name.replace('_', '-')}/"] = "text/html", link.encode()
        self.pages[f"/files/{file}"] = "application/octet-stream", packed


def _tarball(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size, entry.mode = len(content), 0o755
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def _wheel(name: str, version: str, module: bytes) -> bytes:
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": module,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n".encode(),
    }
    record = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, content in (*files.items(), (f"{info}/RECORD", record.encode())):
            archive.writestr(path, content)
    return packed.getvalue()


@contextmanager
def registry() -> Generator[Registry]:
    """Serve packages for as long as it is held."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.begin()

        def do_GET(self) -> None:
            self.wfile.write(self.begin())

        def begin(self) -> bytes:
            """Answer but for the body; what was found may be kept, as the real ones say."""
            found.asked.append(self.path)
            kind, body = found.pages.get(self.path, ("text/plain", b""))
            self.send_response(200 if self.path in found.pages else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "max-age=600")
            self.end_headers()
            return body

        def do_POST(self) -> None:
            self.send_error(404)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's
            """Keep quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found = Registry(f"http://127.0.0.1:{server.server_port}")
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()
