# pyright: basic
# authlib has no types.
"""A real authorization server, authlib's, on loopback; and a server whose tools it guards.

In a test: `with authority() as one`, then `async with serving(Protected(one)) as url`.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import web
from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import (
    AuthorizationCodeMixin,
    ClientMixin,
    TokenMixin,
    grants,
    scope_to_list,
)
from authlib.oauth2.rfc6749.errors import AccessDeniedError
from authlib.oauth2.rfc7523 import JWTBearerClientAssertion
from authlib.oauth2.rfc7591 import ClientRegistrationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc9207 import IssuerParameter
from flask import Flask, Response, jsonify, redirect, request
from joserfc.jwk import import_key
from tests.sources.mcp.peers.web import Modern, error, fields, json_response
from werkzeug.serving import make_server

if TYPE_CHECKING:
    from collections.abc import Generator

METHODS = ["none", "client_secret_basic", "client_secret_post", "private_key_jwt"]
_LOCK = threading.RLock()
_HELD_SECONDS = 20


@dataclass
class Client(ClientMixin):
    """Somebody who may ask for tokens."""

    client_id: str
    secret: str = ""
    method: str = "none"
    redirects: tuple[str, ...] = ()
    grants: tuple[str, ...] = ("authorization_code", "refresh_token")
    key: str = ""
    kind: str = ""
    described: dict[str, Any] = field(default_factory=dict)

    def get_client_id(self) -> str:
        return self.client_id

    def get_default_redirect_uri(self) -> str:
        return self.redirects[0]

    def get_allowed_scope(self, scope: str) -> str:
        return scope or ""

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri in self.redirects

    def check_client_secret(self, client_secret: str) -> bool:
        return self.secret == client_secret

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return endpoint != "token" or method == self.method

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in self.grants


@dataclass
class Code(AuthorizationCodeMixin):
    """What a browser comes back with."""

    code: str
    client_id: str
    redirect_uri: str
    scope: str
    resource: str
    code_challenge: str
    code_challenge_method: str
    user: str = "somebody"

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope


@dataclass
class Token(TokenMixin):
    """What was given."""

    access_token: str
    client_id: str
    scope: str
    resource: str
    expires_at: float
    refresh_token: str = ""
    ended: bool = False
    spent: bool = False

    def check_client(self, client: Client) -> bool:
        return client.client_id == self.client_id

    def get_scope(self) -> str:
        return self.scope

    def get_expires_in(self) -> int:
        return 0

    def is_expired(self) -> bool:
        return False

    def is_revoked(self) -> bool:
        return self.spent


class Authority:
    """The server's mind: whom it knows, what it gave, what it was asked."""

    def __init__(self) -> None:
        self.issuer = ""
        self.clients: dict[str, Client] = {}
        self.codes: dict[str, Code] = {}
        self.tokens: list[Token] = []
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.lifetime = 3600
        self.consents = True
        self.registers = True
        self.metadata: dict[str, Any] = {}
        self.said_issuer = ""
        self.status: dict[str, int] = {}
        self.moved: dict[str, str] = {}
        self.held: dict[str, threading.Event] = {}

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]

    @property
    def grants(self) -> list[str]:
        return [form.get("grant_type", "") for path, form in self.asked if path == "/token"]

    def add(self, client: Client) -> Client:
        self.clients[client.client_id] = client
        return client

    def find(self, access: str) -> Token | None:
        """A token that is good now."""
        with _LOCK:
            known = [token for token in self.tokens if token.access_token == access]
        return known[0] if known and not known[0].ended else None

    def end_tokens(self) -> None:
        """Take no access token that was given so far any longer; refresh tokens stay good."""
        with _LOCK:
            for token in self.tokens:
                token.ended = True

    def revoke(self) -> None:
        """Take nothing that was given so far any longer."""
        self.end_tokens()
        for token in self.tokens:
            token.spent = True

    def describe(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "registration_endpoint": f"{self.issuer}/register",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
            "token_endpoint_auth_methods_supported": METHODS,
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
            **self.metadata,
        }

    def save(self, token: dict[str, Any], request: Any) -> None:
        source = getattr(request, "authorization_code", None) or request.refresh_token
        resource = request.form.get("resource", "")
        assert source is None or source.resource == resource, "one token is for one resource"
        with _LOCK:
            self.tokens.append(
                Token(
                    access_token=token["access_token"],
                    client_id=request.client.client_id,
                    scope=token.get("scope", ""),
                    resource=resource,
                    expires_at=time.time() + self.lifetime,
                    refresh_token=token.get("refresh_token", ""),
                )
            )


class Server(AuthorizationServer):
    """One whose tokens last as long as it is told at any time."""

    lifetime: Any = None

    def generate_token(self, *arguments: Any, **more: Any) -> dict[str, Any]:
        return {**super().generate_token(*arguments, **more), "expires_in": self.lifetime()}


def build(mind: Authority) -> Flask:
    app = Flask("authority")
    app.config["OAUTH2_REFRESH_TOKEN_GENERATOR"] = True
    server = Server(app, mind.clients.get, mind.save)
    server.lifetime = lambda: mind.lifetime
    _register(mind, server)

    @app.before_request
    def note() -> Response | None:
        path = request.path
        mind.asked.append((path, {**request.args, **request.form}))
        if path in mind.held:
            mind.held[path].wait(_HELD_SECONDS)
        if path in mind.moved:
            return redirect(mind.moved[path], 307)  # type: ignore[return-value]
        return Response("no", mind.status[path]) if path in mind.status else None

    @app.get("/.well-known/oauth-authorization-server")
    def described() -> Response:
        return jsonify(mind.describe())

    @app.get("/authorize")
    def authorize() -> Any:
        grant = server.get_consent_grant(end_user="somebody")
        user = "somebody" if mind.consents else None
        return server.create_authorization_response(grant=grant, grant_user=user)

    @app.post("/token")
    def token() -> Any:
        with _LOCK:
            return server.create_token_response()

    @app.post("/register")
    def register() -> Any:
        return server.create_endpoint_response("client_registration")

    return app


def _register(mind: Authority, server: Any) -> None:  # noqa: C901 - one small class for each RFC
    class ByCode(grants.AuthorizationCodeGrant):
        TOKEN_ENDPOINT_AUTH_METHODS = METHODS[:3]

        def save_authorization_code(self, code: str, request: Any) -> None:
            data = request.payload.data
            mind.codes[code] = Code(
                code=code,
                client_id=request.client.client_id,
                redirect_uri=request.payload.redirect_uri,
                scope=request.payload.scope or "",
                resource=data.get("resource", ""),
                code_challenge=data.get("code_challenge", ""),
                code_challenge_method=data.get("code_challenge_method", ""),
            )

        def query_authorization_code(self, code: str, client: Client) -> Code | None:
            found = mind.codes.get(code)
            return found if found and found.client_id == client.client_id else None

        def delete_authorization_code(self, authorization_code: Code) -> None:
            mind.codes.pop(authorization_code.code)

        def authenticate_user(self, authorization_code: Code) -> str:
            return authorization_code.user

    class ByRefresh(grants.RefreshTokenGrant):
        TOKEN_ENDPOINT_AUTH_METHODS = METHODS[:3]
        INCLUDE_NEW_REFRESH_TOKEN = True

        def authenticate_refresh_token(self, refresh_token: str) -> Token | None:
            known = [one for one in mind.tokens if one.refresh_token == refresh_token]
            return known[0] if known and not known[0].spent else None

        def authenticate_user(self, refresh_token: Token) -> str:
            del refresh_token
            return "somebody"

        def revoke_old_credential(self, refresh_token: Token) -> None:
            refresh_token.spent = refresh_token.ended = True

    class ByItself(grants.ClientCredentialsGrant):
        TOKEN_ENDPOINT_AUTH_METHODS = METHODS[1:]

    class ByKey(JWTBearerClientAssertion):
        CLIENT_AUTH_METHOD = "private_key_jwt"  # type: ignore[misc]

        def get_audiences(self) -> list[str]:
            return [mind.issuer]

        def validate_jti(self, claims: Any, jti: str) -> bool:
            del claims
            return bool(jti)

        def resolve_client_public_key(self, client: Client) -> Any:
            return import_key(client.key, client.kind)  # type: ignore[call-overload]

    class Registration(ClientRegistrationEndpoint):
        def authenticate_token(self, request: Any) -> Any:
            del request
            if not mind.registers:
                raise AccessDeniedError
            return "anybody"

        def get_server_metadata(self) -> dict[str, Any]:
            return mind.describe()

        def save_client(self, client_info: Any, client_metadata: Any, request: Any) -> Client:
            return mind.add(
                Client(
                    client_id=client_info["client_id"],
                    secret=client_info["client_secret"],
                    method=client_metadata["token_endpoint_auth_method"],
                    redirects=tuple(client_metadata["redirect_uris"]),
                    described=dict(request.payload.data),
                )
            )

    class Issuer(IssuerParameter):
        def get_issuer(self) -> str:
            return mind.said_issuer or mind.issuer

    server.register_grant(ByCode, [CodeChallenge(required=True)])
    server.register_grant(ByRefresh)
    server.register_grant(ByItself)
    server.register_client_auth_method("private_key_jwt", ByKey())  # type: ignore[call-arg]
    server.register_endpoint(Registration)
    server.register_extension(Issuer())


@contextmanager
def authority(host: str = "127.0.0.1") -> Generator[Authority]:
    """Serve one in a thread."""
    os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"
    mind = Authority()
    server = make_server(host, 0, build(mind), threaded=True)
    server.RequestHandlerClass.log_request = lambda *_, **__: None  # type: ignore[method-assign]
    mind.issuer = f"http://{host}:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield mind
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Protected(Modern):
    """A server that wants a token, for itself; the tool `write` one with a scope."""

    def __init__(self, trusted: Authority, scope: str = "read") -> None:
        super().__init__()
        self.trusted = trusted
        self.scope = scope
        self.refused: list[int] = []
        self.metadata_url = ""
        self.resource = ""
        self.describes = True
        self.tools.append({"name": "write", "inputSchema": {"type": "object"}})

    async def handle(self, request: web.Request) -> web.StreamResponse:
        here = f"{request.scheme}://{request.host}"
        if request.path.startswith("/.well-known/oauth-protected-resource"):
            document = {
                "resource": self.resource or f"{here}{self.path}",
                "authorization_servers": [self.trusted.issuer],
            }
            return json_response(document) if self.describes else web.Response(status=404)
        if request.path != self.path:
            return web.Response(status=404)
        scheme, _, access = request.headers.get("Authorization", "").partition(" ")
        token = self.trusted.find(access) if scheme == "Bearer" else None
        if token is None or token.resource != f"{here}{self.path}":
            metadata = (
                self.metadata_url or f"{here}/.well-known/oauth-protected-resource{self.path}"
            )
            return self.refuse(401, f'resource_metadata="{metadata}", scope="{self.scope}"')
        wanted = fields(orjson.loads(await request.read())).get("params", {}).get("name")
        if wanted == "write" and "write" not in scope_to_list(token.scope):
            return self.refuse(403, 'error="insufficient_scope", scope="write"')
        return await super().handle(request)

    def refuse(self, status: int, words: str) -> web.Response:
        self.refused.append(status)
        headers = {"WWW-Authenticate": f"Bearer {words}"}
        body = orjson.dumps(error(None, -32000))
        return web.Response(status=status, headers=headers, body=body)
