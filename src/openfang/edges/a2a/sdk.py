"""The A2A library, imported as we use it: without traces and log lines of its own.

What it puts into the details of an error is what the type of such a detail allows: texts.
"""

from __future__ import annotations

import logging
import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

# It looks when it is imported; and it writes a traceback for every request that makes no sense.
os.environ.setdefault("OTEL_INSTRUMENTATION_A2A_SDK_ENABLED", "false")
logging.getLogger("a2a").setLevel(logging.CRITICAL)

# Its modules import each other: with this one first it works.
import_module("a2a.server.routes")

# ruff: noqa: E402 - what is done above has to come first
from a2a.compat.v0_3 import a2a_v0_3_pb2 as pb03
from a2a.compat.v0_3 import conversions as conversions03
from a2a.compat.v0_3 import proto_utils as proto03
from a2a.compat.v0_3 import types as types03
from a2a.compat.v0_3.jsonrpc_adapter import JSONRPC03Adapter
from a2a.compat.v0_3.request_handler import RequestHandler03
from a2a.compat.v0_3.rest_adapter import REST03Adapter
from a2a.compat.v0_3.rest_handler import REST03Handler
from a2a.server.context import ServerCallContext
from a2a.server.jsonrpc_models import InvalidRequestError as InvalidRequest03
from a2a.server.jsonrpc_models import JSONRPCError
from a2a.server.request_handlers import response_helpers
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.server.routes.common import ServerCallContextBuilder
from a2a.types import a2a_pb2 as pb
from a2a.utils import error_handlers, errors
from a2a.utils.proto_utils import parse_params, to_stream_response
from google.protobuf.json_format import MessageToDict, Parse, ParseDict, ParseError
from sse_starlette.sse import EventSourceResponse

if TYPE_CHECKING:
    from collections.abc import Iterable

EXCEPTION_MAP = response_helpers.EXCEPTION_MAP

__all__ = [
    "EXCEPTION_MAP",
    "EventSourceResponse",
    "InvalidRequest03",
    "JSONRPC03Adapter",
    "JSONRPCError",
    "MessageToDict",
    "Parse",
    "ParseDict",
    "ParseError",
    "REST03Adapter",
    "REST03Handler",
    "RequestHandler",
    "RequestHandler03",
    "ServerCallContext",
    "ServerCallContextBuilder",
    "build_error_response",
    "build_rest_error_payload",
    "conversions03",
    "errors",
    "parse_params",
    "pb",
    "pb03",
    "proto03",
    "to_stream_response",
    "types03",
]


def build_error_response(
    number: str | int | None, error: errors.A2AError | JSONRPCError
) -> dict[str, Any]:
    """Write an error as JSON-RPC has it."""
    body = response_helpers.build_error_response(number, error)
    _keep_texts(body["error"].get("data"))
    return body


def build_rest_error_payload(error: Exception) -> dict[str, Any]:
    """Write an error as HTTP and JSON have it."""
    body = error_handlers.build_rest_error_payload(error)
    _keep_texts(body["error"].get("details"))
    return body


def _keep_texts(details: Iterable[dict[str, Any]] | None) -> None:
    """Leave out the list of wrong fields where there is no place for it; it has its own detail."""
    for detail in details or ():
        if "metadata" in detail:
            said = cast("dict[str, Any]", detail["metadata"])
            detail["metadata"] = {name: one for name, one in said.items() if isinstance(one, str)}
