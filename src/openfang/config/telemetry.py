"""`[telemetry]`: where traces and metrics are sent."""

from typing import Annotated

from pydantic import Field

from openfang.config.fields import Seconds, SecretLine, Section, Url
from openfang.config.servers import HeaderName


class TelemetrySection(Section):
    """A collector that speaks OTLP over HTTP."""

    endpoint: Url | None = Field(
        default=None,
        description="Its address, without `/v1/traces`; unset means that nothing is sent.",
    )
    headers: dict[HeaderName, SecretLine] = Field(
        default={}, description="Headers sent with every batch; `${NAME}` expands in the values."
    )
    traces: bool = Field(default=True, description="Whether each call is told of as a span.")
    metrics: bool = Field(default=True, description="Whether what is counted is sent as well.")
    sample: Annotated[float, Field(ge=0, le=1)] = Field(
        default=1.0, description="Which part of all traces is told of; a trace is told whole."
    )
    interval_secs: Seconds = Field(default=5, description="Seconds between two batches.")
    allow_private: bool = Field(
        default=False, description="Open loopback and private addresses; never metadata services."
    )
