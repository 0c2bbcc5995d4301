# pyright: basic
# authlib has no types.
"""A real issuer of access tokens, authlib's (RFC 9068), on loopback; it notes what it was asked.

In a test: `with issuer() as one`, then `await one.token(web, scope="files")`.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import grants
from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from flask import Flask, Response, jsonify, redirect, request
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet
from tests.sources.mcp.peers.authority import Client
from werkzeug.serving import make_server

if TYPE_CHECKING:
    from collections.abc import Generator

    import aiohttp

AUDIENCE = "https://fang.example/mcp"
JWKS = "/keys"
METHODS = ["client_secret_post"]
METADATA = "/.well-known/oauth-authorization-server"
OPENID = "/.well-known/openid-configuration"


def new_key(name: str) -> ECKey:
    return ECKey.generate_key("P-256", {"kid": name, "use": "sig", "alg": "ES256"})


class Issuer:
    """The server's mind: what it signs with, what it says of itself, what it was asked."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.url = ""
        self.key = new_key("one")
        self.published: list[Any] = [self.key]
        self.described_at = METADATA
        self.metadata: dict[str, Any] = {}
        self.asked: list[str] = []
        self.down = False
        self.moved: dict[str, str] = {}
        self.clients = {"robot": Client("robot", secret="hush", method="client_secret_post")}
        self.clients["robot"].grants = ("client_credentials",)

    def rotate(self, name: str) -> None:
        """Sign with another key, and publish that one alone."""
        self.key = new_key(name)
        self.published = [self.key]

    async def token(
        self, web: aiohttp.ClientSession, scope: str = "", resource: str = AUDIENCE
    ) -> str:
        """Ask for a token as a client does."""
        form = {"grant_type": "client_credentials", "client_id": "robot", "client_secret": "hush"}
        form |= {"resource": resource, "scope": scope}
        async with web.post(f"{self.url}/token", data=form) as response:
            return (await response.json())["access_token"]

    def claims(self, **changed: Any) -> dict[str, Any]:
        """What a good token says; None takes a claim out."""
        now = int(time.time())
        said = {"iss": self.url, "aud": AUDIENCE, "sub": "ada", "iat": now, "exp": now + 600}
        return {name: value for name, value in (said | changed).items() if value is not None}

    def sign(self, key: Any = None, header: dict[str, Any] | None = None, **changed: Any) -> str:
        """Write a token by hand, as nobody else would."""
        key = key or self.key
        head = {"alg": "ES256", "kid": key.kid, "typ": "at+jwt", **(header or {})}
        return jwt.encode(head, self.claims(**changed), key, default_type=None)

    def describe(self) -> dict[str, Any]:
        said = {"issuer": self.url, "jwks_uri": f"{self.url}{JWKS}", **self.metadata}
        return {**said, "token_endpoint": f"{self.url}/token"}


def _build(mind: Issuer) -> Flask:
    app = Flask("issuer")
    server = AuthorizationServer(app, mind.clients.get, lambda *_: None)

    class ByItself(grants.ClientCredentialsGrant):
        TOKEN_ENDPOINT_AUTH_METHODS = METHODS

    class Jwt(JWTBearerTokenGenerator):
        def get_jwks(self) -> Any:
            return KeySet([mind.key])

        def get_audiences(self, client: Any, user: Any, scope: str) -> Any:
            del client, user, scope
            return [request.form["resource"]]

    server.register_grant(ByItself)
    server.register_token_generator("default", Jwt(mind.url, alg="ES256"))

    @app.before_request
    def note() -> Any:
        mind.asked.append(request.path)
        if request.path in mind.moved:
            return redirect(mind.moved[request.path])
        return Response("no", 500) if mind.down else None

    @app.get("/<path:place>")
    def described(place: str) -> Any:
        if f"/{place}" == f"{mind.path}{JWKS}":
            return jsonify(KeySet(mind.published).as_dict())
        return jsonify(mind.describe()) if f"/{place}" == mind.described_at else ("", 404)

    @app.post(f"{mind.path}/token")
    def token() -> Any:
        return server.create_token_response()

    return app


@contextmanager
def issuer(path: str = "") -> Generator[Issuer]:
    """Serve one in a thread."""
    os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"
    mind = Issuer(path)
    server = make_server("127.0.0.1", 0, Flask("nobody"), threaded=True)
    server.RequestHandlerClass.log_request = lambda *_, **__: None  # type: ignore[method-assign]
    mind.url = f"http://127.0.0.1:{server.server_port}{path}"
    server.app = _build(mind)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield mind
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
