"""A YAML text as plain values, with the place of every key and value kept.

Scalars follow YAML 1.2: `1e-3` is a number, `on` and `no` are text, dates are text. Numbers keep how they are
written, for keys that take text. Aliases and merge keys work. A key that is written twice is noted with both
lines; the last one wins.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from clickmill.errors import ConfigError, Problem
from clickmill.store.whole_file import read_whole

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

MAX_VALUES = 100_000
"""Aliases can blow a small text up to any size; no honest configuration has so many values."""

MAX_DEPTH = 100
"""Everything that walks a document may recurse; no honest configuration is so deep."""
MAX_DIGITS = 400
"""A longer number stays text: no field takes it, and Python would refuse to read it."""
MAX_BYTES = 16 * 2**20
"""Of a file. No honest configuration is so long; a device may never end."""

KeyPath = tuple[str | int, ...]

_PREFIX = "tag:yaml.org,2002:"
_NULL = re.compile(r"(~|null|Null|NULL|)")
_BOOL = re.compile(r"(true|True|TRUE|false|False|FALSE)")
_INT = re.compile(r"([-+]?[0-9]+|0x[0-9a-fA-F]+)")
_FLOAT = re.compile(
    r"([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))"
)
_HALF = re.compile("[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]")
_QUOTED = re.compile(r"""'(?P<one>[^']*)'|"(?P<two>[^"]*)\"""")
_HARMLESS = re.compile(r".?|<[a-z ]+>|\\.[0-9a-fA-F]*")
"""A character, a kind of token, a character that is written with an escape."""


class WrittenInt(int):
    """A number that keeps how it is written, for keys that take it as text: `0012` may be a key or a name."""

    written: str

    def __new__(cls, value: int, written: str | None = None) -> Self:
        number = super().__new__(cls, value)
        number.written = int.__repr__(number) if written is None else written  # without: a copy
        return number

    def __str__(self) -> str:
        return self.written


class WrittenFloat(float):
    """As `WrittenInt`: `1.10` may be a version."""

    written: str

    def __new__(cls, value: float, written: str | None = None) -> Self:
        number = super().__new__(cls, value)
        number.written = float.__repr__(number) if written is None else written
        return number

    def __str__(self) -> str:
        return self.written


class _Loader(yaml.SafeLoader):
    """Composes nodes; what a plain scalar means is decided in `_scalar`."""

    yaml_implicit_resolvers: dict[str, Any] = {"<": [(f"{_PREFIX}merge", re.compile(r"^<<$"))]}  # noqa: RUF012

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = 0
        self.aliases: dict[tuple[yaml.Node, yaml.Node | int], yaml.Mark] = {}
        """Where aliases stand, by what is around them and their key or index: their nodes know the anchor."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        mark: yaml.Mark = event.start_mark
        if isinstance(event, yaml.AliasEvent) and parent is not None and index is not None:
            self.aliases[parent, index] = mark
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _TooDeepError(problem_mark=mark)
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
    """Reads and parses a file. Raises ConfigError with the place of what is wrong.

    Without any problem in it where the file cannot be read: which key names it, if one does, only the caller
    knows.
    """
    try:
        data = read_whole(file, max_bytes=MAX_BYTES)
    except ValueError as error:
        raise ConfigError(f"cannot read `{file}`: {error}") from error
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
        loader = _Loader(text)
        node = loader.get_single_node()
    except yaml.YAMLError as error:
        raise syntax_error(error, text, file) from None
    if node is not None:
        document.value = _Builder(document, loader.aliases).build(node, (), (), node.start_mark)
    return document


def syntax_error(error: yaml.YAMLError, text: str, file: str, *, hint: str | None = None) -> ConfigError:
    """What the parser says of a text, with the place; nothing of the text, which may hold secrets.

    The parser itself shows the line. It also names aliases, and one that is not defined may be a password
    that begins with `*`.
    """
    if isinstance(error, yaml.reader.ReaderError):
        place = Place(file, text.count("\n", 0, error.position) + 1)
        problem = place.problem(f"character U+{error.character:04X} is not allowed in YAML")
        return ConfigError.of([problem], hint=hint)
    if not isinstance(error, yaml.MarkedYAMLError):
        return ConfigError.of([Place(file).problem("not valid YAML")], hint=hint)
    mark = error.problem_mark or error.context_mark
    place = Place(file, mark.line + 1, mark.column + 1) if mark else Place(file)
    if isinstance(error, _TooDeepError):
        return ConfigError.of([place.problem(_too_deep())], hint=hint)
    what = _without_names(" ".join(part for part in (error.context, error.problem) if part))
    if r"'\t'" in what:
        hint = "indent with spaces, YAML takes no tabs"
    elif "alias" in what:
        hint = "put quotes around a text that begins with `*`"
    return ConfigError.of([place.problem(f"not valid YAML: {what}")], hint=hint)


def _without_names(words: str) -> str:
    def shown(quoted: re.Match[str]) -> str:
        return quoted[0] if _HARMLESS.fullmatch(quoted["one"] or quoted["two"] or "") else "'...'"

    return _QUOTED.sub(shown, words)


def _too_deep() -> str:
    return f"nested too deeply: more than {MAX_DEPTH} levels"


@dataclass(slots=True)
class _Builder:
    """Turns nodes into values and writes down their places."""

    document: Document
    aliases: dict[tuple[yaml.Node, yaml.Node | int], yaml.Mark]
    num_values: int = 0

    def build(self, node: yaml.Node, path: KeyPath, around: tuple[yaml.Node, ...], mark: yaml.Mark) -> Any:
        """`mark` is where it stands: of an alias not the place of what it names."""
        place = self.place(mark)
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
                self.build(item, (*path, index), (*around, node), self.mark(node, index, item))
                for index, item in enumerate(node.value)
            ]
        return self.scalar(node, path, place)

    def mapping(self, node: yaml.MappingNode, path: KeyPath, around: tuple[yaml.Node, ...]) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        lines: dict[str, Place] = {}
        for key_node, value_node in node.value:
            if _is_merge(key_node):
                for part in self.merge(value_node, path, around, self.place(key_node.start_mark)):
                    merged = {**part, **merged}
        for key_node, value_node in node.value:  # after what is merged: these count, and so do their places
            if _is_merge(key_node):
                continue
            place = self.place(key_node.start_mark)
            if not isinstance(key_node, yaml.ScalarNode):
                raise ConfigError.of([place.problem("a key must be a word", key=dotted(path))])
            key = self.text(key_node.value, path, place)
            if key in lines:
                self.note_duplicate((*path, key), lines[key], place)
                self.document.forget((*path, key))
            lines[key] = place
            own[key] = self.build(value_node, (*path, key), around, self.mark(node, key_node, value_node))
            self.document.keys[*path, key] = place
        return {**merged, **own}

    def merge(
        self, node: yaml.Node, path: KeyPath, around: tuple[yaml.Node, ...], place: Place
    ) -> list[dict[str, Any]]:
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        own_place = self.document.values[path]
        values = [self.build(part, path, around, part.start_mark) for part in parts]
        self.document.values[path] = own_place
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
            return _plain(node.value) if is_plain else self.text(node.value, path, place)
        if tag in {"int", "float", "bool"}:
            return _plain(node.value)
        message = "a tag is not allowed here; put quotes around a text that begins with `!`"
        raise ConfigError.of([place.problem(message, key=dotted(path))])

    def text(self, text: str, path: KeyPath, place: Place) -> str:
        """What can be written to a file, and be part of a command: escapes can make other texts as well."""
        try:
            found = whole_text(text)
        except ValueError as error:
            raise ConfigError.of([place.problem(str(error), key=dotted(path))]) from None
        return found

    def mark(self, parent: yaml.Node, index: yaml.Node | int, node: yaml.Node) -> yaml.Mark:
        return self.aliases.get((parent, index), node.start_mark)

    def place(self, mark: yaml.Mark) -> Place:
        return Place(self.document.file, mark.line + 1, mark.column + 1)


def whole_text(text: str) -> str:
    """The text with halves of a character joined: JSON writes those beyond U+FFFF as two escapes.

    Raises ValueError for a half alone, which no encoding has, and for the null character, which ends a text
    wherever it leaves this process.
    """
    if "\0" in text:
        raise ValueError("must be a text without null characters (`\\0`)")
    if half := _HALF.search(text):
        raise ValueError(f"must be a text of whole characters; U+{ord(half[0]):04X} is half of one")
    return text.encode("utf-16", "surrogatepass").decode("utf-16")


def written_text(value: Any) -> str | None:
    """The text that a single value is, a number as it is written; None for anything else."""
    is_text = isinstance(value, str | int | float) and not isinstance(value, bool)
    return str(value) if is_text else None


def _is_merge(node: yaml.Node) -> bool:
    return bool(node.tag == f"{_PREFIX}merge")


def _plain(text: str) -> Any:
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if len(text) > MAX_DIGITS:
        return text
    if _INT.fullmatch(text):
        whole = int(text, 16 if text.startswith("0x") else 10)
        return whole if str(whole) == text else WrittenInt(whole, text)
    if _FLOAT.fullmatch(text):
        number = float(text.replace(".", "", 1) if text.lower().endswith(("inf", "nan")) else text)
        return number if str(number) == text else WrittenFloat(number, text)
    return text


def dotted(path: KeyPath) -> str | None:
    """`runner.0.epochs`; None for the top."""
    return ".".join(str(part) for part in path) or None
