"""YAML with line numbers: plain values, no key twice, and a bound on what anchors can multiply."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, cast

import yaml

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from openfang.config.lines import Key

MAX_VALUES = 10_000
MAX_DEPTH = 64
_PLAIN = frozenset({"tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"})
_MERGE = "tag:yaml.org,2002:merge"


class YamlProblem(Exception):  # noqa: N818 - what it is called in messages
    """A text that the parser takes and we do not."""

    def __init__(self, message: str, mark: yaml.Mark) -> None:
        super().__init__(message)
        self.line: int = mark.line + 1
        self.column: int = mark.column + 1


def read_yaml(text: str) -> tuple[Any, dict[Key, int]]:
    """Read one document: its value, and the line of each key and list entry."""
    loader = yaml.SafeLoader(text)
    try:
        root = loader.get_single_node()
        build = _Build(loader)
        return (None if root is None else build.value(root, ())), build.lines
    finally:
        loader.dispose()


@dataclass(slots=True)
class _Build:
    loader: yaml.SafeLoader
    lines: dict[Key, int] = field(default_factory=dict["Key", int])
    count: int = 0

    def value(self, node: yaml.Node, path: Key) -> Any:  # noqa: ANN401 - any YAML value
        self.count += 1
        if self.count > MAX_VALUES or len(path) > MAX_DEPTH:
            raise YamlProblem("expected fewer values: anchors multiply them", node.start_mark)
        match node:
            case yaml.MappingNode() | yaml.SequenceNode() if node.tag not in _PLAIN:
                raise YamlProblem(f"expected a plain value, got {node.tag}", node.start_mark)
            case yaml.MappingNode():
                return self.mapping(node, path)
            case yaml.SequenceNode():
                return [self.entry(item, (*path, i)) for i, item in enumerate(node.value)]
            case _:
                return self.scalar(node)

    def entry(self, node: yaml.Node, path: Key) -> Any:  # noqa: ANN401 - any YAML value
        self.lines[path] = node.start_mark.line + 1
        return self.value(node, path)

    def mapping(self, node: yaml.MappingNode, path: Key) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                self.merge(merged, value_node, path)
        own: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag != _MERGE:
                self.pair(own, key_node, value_node, path)
        return merged | own

    def pair(
        self, into: dict[str, Any], key_node: yaml.Node, value_node: yaml.Node, path: Key
    ) -> None:
        key = self.key(key_node)
        if key in into:
            raise YamlProblem(f"expected each key once, got {key!r} twice", key_node.start_mark)
        self.lines[*path, key] = key_node.start_mark.line + 1
        into[key] = self.value(value_node, (*path, key))

    def merge(self, into: dict[str, Any], node: yaml.Node, path: Key) -> None:
        """Take in what `<<` names; of several the first has the word."""
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for source in sources:
            if not isinstance(source, yaml.MappingNode):
                raise YamlProblem("expected a table to merge", source.start_mark)
            into |= self.value(source, path) | into

    def key(self, node: yaml.Node) -> str:
        key = self.scalar(node) if isinstance(node, yaml.ScalarNode) else None
        if not isinstance(key, str):
            raise YamlProblem("expected a key that is a string", node.start_mark)
        return key

    def scalar(self, node: yaml.Node) -> Any:  # noqa: ANN401 - any YAML value
        construct = cast("Callable[[yaml.Node], Any]", self.loader.construct_object)  # pyright: ignore[reportUnknownMemberType] - its stub leaves the node open
        return construct(node)
