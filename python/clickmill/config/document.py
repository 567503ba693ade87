"""A YAML text as plain values, with the place of every key and value kept.

Scalars follow YAML 1.2: `1e-3` is a number, `on` and `no` are text, dates are text. Aliases and merge keys
work. A key that is written twice is noted with both lines; the last one wins.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from clickmill.errors import ConfigError, Problem

MAX_VALUES = 100_000
"""Aliases can blow a small text up to any size; no honest configuration has so many values."""

MAX_DEPTH = 100
"""Everything that walks a document may recurse; no honest configuration is so deep."""
MAX_DIGITS = 400
"""A longer number stays text: no field takes it, and Python would refuse to read it."""

KeyPath = tuple[str | int, ...]

_PREFIX = "tag:yaml.org,2002:"
_NULL = re.compile(r"(~|null|Null|NULL|)")
_BOOL = re.compile(r"(true|True|TRUE|false|False|FALSE)")
_INT = re.compile(r"([-+]?[0-9]+|0x[0-9a-fA-F]+)")
_FLOAT = re.compile(
    r"([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))"
)


class _Loader(yaml.SafeLoader):
    """Composes nodes; what a plain scalar means is decided in `_scalar`."""

    yaml_implicit_resolvers: dict[str, Any] = {"<": [(f"{_PREFIX}merge", re.compile(r"^<<$"))]}  # noqa: RUF012
    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            event = self.peek_event()  # type: ignore[no-untyped-call]
            raise _TooDeepError(problem_mark=event.start_mark)
        try:
            node: yaml.Node | None = super().compose_node(parent, index)
        finally:
            self.depth -= 1
        return node


class _TooDeepError(yaml.MarkedYAMLError):
    """Collections in collections beyond `MAX_DEPTH`."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was written; lines and columns count from 1."""

    file: str
    line: int | None = None
    column: int | None = None

    def problem(self, message: str, **details: str | None) -> Problem:
        """A problem at this place."""
        return Problem(message, self.file, self.line, self.column, **details)


@dataclass(slots=True)
class Document:
    """Values and places of one configuration; `path` is a tuple of keys and indices from the top."""

    file: str
    value: Any = None
    keys: dict[KeyPath, Place] = field(default_factory=dict)
    """Places of the keys."""
    values: dict[KeyPath, Place] = field(default_factory=dict)
    """Places of the values."""
    notes: list[Problem] = field(default_factory=list)

    def key_place(self, path: KeyPath) -> Place:
        """Where the key stands; the nearest thing around it where there is none."""
        return self._nearest(path, self.keys)

    def value_place(self, path: KeyPath) -> Place:
        """Where the value stands; the nearest thing around it where there is none."""
        return self._nearest(path, self.values)

    def forget(self, path: KeyPath) -> None:
        """Drop the places of what stood at `path` and inside it."""
        for places in (self.keys, self.values):
            for known in [known for known in places if known[: len(path)] == path]:
                del places[known]

    def get(self, path: KeyPath) -> Any:
        """The value at `path`; None where there is none."""
        value = self.value
        for part in path:
            if isinstance(value, dict):
                value = value.get(part)
            elif isinstance(value, list) and isinstance(part, int) and part < len(value):
                value = value[part]
            else:
                return None
        return value

    def _nearest(self, path: KeyPath, places: dict[KeyPath, Place]) -> Place:
        if path in places:
            return places[path]
        while path:
            if path in self.values:
                return self.values[path]
            path = path[:-1]
        return self.values.get((), Place(self.file, 1, 1))


def read_document(file: str | Path) -> Document:
    """Reads and parses a file. Raises ConfigError with the place of what is wrong."""
    try:
        data = Path(file).read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read `{file}`: {error.strerror}") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = Place(str(file), line).problem(f"byte 0x{data[error.start]:02x} is not UTF-8")
        raise ConfigError.of([problem], hint="save the file as UTF-8") from error
    return parse_document(text, str(file))


def parse_document(text: str, file: str) -> Document:
    """Parses YAML (or JSON, which is YAML). Raises ConfigError with the place of what is wrong."""
    document = Document(file)
    try:
        node = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, file) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        problem = Place(file, line).problem(f"character U+{error.character:04X} is not allowed in YAML")
        raise ConfigError.of([problem]) from error
    if node is not None:
        document.value = _Builder(document).build(node, (), ())
    return document


def _syntax_error(error: yaml.MarkedYAMLError, file: str) -> ConfigError:
    mark = error.problem_mark or error.context_mark
    place = Place(file, mark.line + 1, mark.column + 1) if mark else Place(file)
    if isinstance(error, _TooDeepError):
        return ConfigError.of([place.problem(_too_deep())])
    what = " ".join(part for part in (error.context, error.problem) if part)
    hint = "indent with spaces, YAML takes no tabs" if r"'\t'" in what else None
    return ConfigError.of([place.problem(f"not valid YAML: {what}")], hint=hint)


def _too_deep() -> str:
    return f"nested too deeply: more than {MAX_DEPTH} levels"


@dataclass(slots=True)
class _Builder:
    """Turns nodes into values and writes down their places."""

    document: Document
    num_values: int = 0

    def build(self, node: yaml.Node, path: KeyPath, around: tuple[yaml.Node, ...]) -> Any:
        place = self.place(node)
        self.document.values[path] = place
        self.num_values += 1
        if self.num_values > MAX_VALUES:
            raise ConfigError.of([place.problem(f"more than {MAX_VALUES} values once aliases are expanded")])
        if len(around) >= MAX_DEPTH:  # aliases can nest what is flat in the text
            raise ConfigError.of([place.problem(_too_deep())])
        if any(node is other for other in around):
            raise ConfigError.of([place.problem("an alias contains itself", key=dotted(path))])
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path, (*around, node))
        if isinstance(node, yaml.SequenceNode):
            return [
                self.build(item, (*path, index), (*around, node)) for index, item in enumerate(node.value)
            ]
        return self.scalar(node, path, place)

    def mapping(self, node: yaml.MappingNode, path: KeyPath, around: tuple[yaml.Node, ...]) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        lines: dict[str, Place] = {}
        for key_node, value_node in node.value:
            place = self.place(key_node)
            if key_node.tag == f"{_PREFIX}merge":
                for part in self.merge(value_node, path, around, place):
                    merged = {**part, **merged}
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                raise ConfigError.of([place.problem("a key must be a word", key=dotted(path))])
            key = key_node.value
            if key in lines:
                self.note_duplicate((*path, key), lines[key], place)
                self.document.forget((*path, key))
            lines[key] = place
            own[key] = self.build(value_node, (*path, key), around)
            self.document.keys[*path, key] = place
        return {**merged, **own}

    def merge(
        self, node: yaml.Node, path: KeyPath, around: tuple[yaml.Node, ...], place: Place
    ) -> list[dict[str, Any]]:
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        values = [self.build(part, path, around) for part in parts]
        if not all(isinstance(value, dict) for value in values):
            raise ConfigError.of(
                [place.problem("`<<` takes a mapping or a list of mappings", key=dotted(path))]
            )
        return values

    def note_duplicate(self, path: KeyPath, first: Place, second: Place) -> None:
        self.document.notes.append(
            second.problem(
                f"is written twice, in line {first.line} and in line {second.line}; the last one wins",
                key=dotted(path),
            )
        )

    def scalar(self, node: yaml.Node, path: KeyPath, place: Place) -> Any:
        tag = node.tag.removeprefix(_PREFIX)
        is_plain = isinstance(node, yaml.ScalarNode) and node.style is None
        if tag == "str" or (tag == "null" and is_plain):
            return _plain(node.value) if is_plain else node.value
        if tag in {"int", "float", "bool"}:
            return _plain(node.value)
        message = f"the tag `{node.tag}` is not allowed"
        raise ConfigError.of([place.problem(message, key=dotted(path))])

    def place(self, node: yaml.Node) -> Place:
        mark = node.start_mark
        return Place(self.document.file, mark.line + 1, mark.column + 1)


def _plain(text: str) -> Any:
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if len(text) > MAX_DIGITS:
        return text
    if _INT.fullmatch(text):
        return int(text, 16 if text.startswith("0x") else 10)
    if _FLOAT.fullmatch(text):
        return float(text.replace(".", "", 1) if text.lower().endswith(("inf", "nan")) else text)
    return text


def dotted(path: KeyPath) -> str | None:
    """`runner.0.epochs`; None for the top."""
    return ".".join(str(part) for part in path) or None
