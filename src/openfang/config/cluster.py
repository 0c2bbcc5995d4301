"""This node among others on one database."""

from typing import Final

from pydantic import Field

from openfang.config.fields import Section, Url, meaning

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
