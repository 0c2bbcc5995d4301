"""This node among others on one database."""

from typing import Final, Literal

from pydantic import Field

from openfang.config.fields import Count, Section, Url, meaning

NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$"


class Cluster(Section):
    """This node among others on one Postgres database."""

    node: str | None = Field(
        default=None,
        pattern=NAME,
        json_schema_extra=meaning("letters, digits, _ . and -, at most 63"),
        description="The node's name, of which there is one in a database; "
        "by default the one in the home's file `node`.",
    )
    address: Url | None = Field(
        default=None,
        description="Where other nodes of it reach this one; by default where it listens.",
    )
    engine: Literal["auto", "inline", "dbos"] = Field(
        default="auto",
        description="Who works on tasks: `inline` is the node that took them, `dbos` is any node, "
        "by queues, also after that one is gone; `auto` is `dbos` where it is installed.",
    )
    runs: Count = Field(
        default=200, description="Tasks from queues that this node works on at the same time."
    )
    runs_per_key: Count = Field(
        default=50, description="Tasks of one key that all nodes work on at the same time."
    )
    runs_per_agent: int = Field(
        default=0,
        ge=0,
        description="Tasks of one agent that all nodes work on at the same time, "
        "where its manifest says nothing else; 0 is no bound.",
    )
