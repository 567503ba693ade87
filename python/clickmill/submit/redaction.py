"""Secrets taken out of what is written, shown or sent.

A file has the shape of a backend.yaml where a section at its top has one of the secret keys. Their values
become empty texts at the places where YAML found them, so that everything else is what it was, anchors and
lines included. Comments that may tell of a secret go: those on the lines of secret keys, and those that name
such a key, as a line does that was commented out.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import yaml

from clickmill.config.backend.secrets import SECRETS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MASK = "***"

_SECTIONS = sorted({str(section) for section, _ in SECRETS})
_KEYS = "|".join(sorted(str(key).replace("_", "[_-]") for _, key in SECRETS))
_QUOTED_COLON = r"""["']?\s*:"""
_SECTION_KEY = re.compile(rf"\b({'|'.join(_SECTIONS)}){_QUOTED_COLON}")
_WRITTEN = r"""(?m)(?:^|[{\[,]|(?<=[-?])[ \t])[ \t]*["']?(%s)["']?[ \t]*:(?![:=])(?=[ \t]*(.*))"""
"""A key where one may begin, and the rest of its line; `a::b` and `a := b` are code."""
_WRITTEN_SECTION = re.compile(_WRITTEN % "|".join(_SECTIONS))
_WRITTEN_SECRET = re.compile(_WRITTEN % _KEYS)
_EMPTY = re.compile(r"""(""|''|~|null\b|[,}\]]).*""")
_NEXT_LINE = re.compile(r"(?:[ \t]*(?:#.*)?\r?\n)*([ \t]*)\S")
_SECRET_NAME = re.compile(rf"\b({_KEYS})([_-]file)?\b")
_LINE_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_COMMENT = re.compile(r"(?:(?<=[ \t])|^)#")


def masked(text: str, secrets: Iterable[str]) -> str:
    """The text with every secret as `***`; the longest first, for one may be part of another."""
    for secret in sorted(set(secrets), key=len, reverse=True):
        text = text.replace(secret, MASK) if secret else text
    return text


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text in which the secret keys of a backend.yaml are empty; it has the lines of the original."""

    text: str
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """What was taken out."""
    named_files: tuple[str, ...] = ()
    """What `fs_ugi_file` and the like name: files that hold a secret."""
    unreadable_line: int | None = None
    """Line of a secret in a text that looks like a backend.yaml and is no YAML: nothing was taken out."""


def without_secrets(text: str) -> Redacted:
    """The text as it is, unless it has the shape of a backend.yaml."""
    if not (_SECTION_KEY.search(text) and _SECRET_NAME.search(text)):
        return Redacted(text)
    try:
        roots = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
        tokens = list(yaml.scan(text, Loader=yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError):
        return Redacted(text, unreadable_line=secret_line(text))
    entries = [
        (name, value)
        for root in roots
        for section, key in SECRETS
        for _, inner in _entries(root, str(section))
        for name, value in _entries(inner, str(key))
    ]
    files = tuple(
        value.value
        for root in roots
        for section, key in SECRETS
        for _, inner in _entries(root, str(section))
        for _, value in _entries(inner, f"{key}_file")
        if isinstance(value, yaml.ScalarNode) and value.value
    )
    if not entries:
        return Redacted(text, named_files=files)
    scalars = {id(node): node for _, value in entries for node in _scalars(value) if node.value}
    lines = {line for name, value in entries for line in _lines(name, value)}
    edits = [*_emptied(text, scalars.values(), tokens), *_without_comments(text, lines, tokens)]
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return Redacted(text, tuple(dict.fromkeys(node.value for node in scalars.values())), files)


def secret_line(text: str) -> int | None:
    """Line of the first secret key with a value, in a text that looks like a backend.yaml but is no YAML.

    None where it does not look so: it has no such section, or no such key.
    """
    if _WRITTEN_SECTION.search(text):
        for found in _WRITTEN_SECRET.finditer(text):
            if _is_filled(text, found):
                return text.count("\n", 0, found.start(1)) + 1
    return None


def _is_filled(text: str, key: re.Match[str]) -> bool:
    rest = key[2].strip()
    if rest and not rest.startswith("#"):
        return not _EMPTY.fullmatch(rest)
    # The value may stand on the next line, deeper than the line of its key.
    start = text.rfind("\n", 0, key.start(1)) + 1
    line = text[start : key.start(1)]
    after = _NEXT_LINE.match(text, text.find("\n", key.end()) + 1) if "\n" in text[key.end() :] else None
    return after is not None and len(after[1]) > len(line) - len(line.lstrip(" \t"))


def _entries(
    node: yaml.Node | None, key: str, seen: set[int] | None = None
) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    """All of a mapping with a key, which may be written more than once, or merged from elsewhere."""
    is_merged = seen is not None
    seen = set() if seen is None else seen
    if node is None or id(node) in seen:  # an alias may contain itself
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode) and is_merged:  # `<<: [*a, *b]`
        for part in node.value:
            yield from _entries(part, key, seen)
    if not isinstance(node, yaml.MappingNode):
        return
    for name, value in node.value:
        if name.tag == "tag:yaml.org,2002:merge":
            yield from _entries(value, key, seen)
        elif isinstance(name, yaml.ScalarNode) and name.value.replace("-", "_") == key:
            yield name, value


def _scalars(node: yaml.Node, seen: set[int] | None = None) -> Iterator[yaml.ScalarNode]:
    """The node, or all that is in it: a secret that is a list is wrong, but no less a secret."""
    seen = set() if seen is None else seen
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.ScalarNode):
        yield node
    elif isinstance(node, yaml.CollectionNode):
        for item in node.value:
            for part in item if isinstance(item, tuple) else (item,):
                yield from _scalars(part, seen)


def _lines(name: yaml.Node, value: yaml.Node) -> Iterator[int]:
    """Lines of a secret key and of its value, wherever an alias takes that from."""
    yield name.start_mark.line
    if name.end_mark.index <= value.start_mark.index:
        yield from range(name.start_mark.line, value.start_mark.line + 1)
    for scalar in _scalars(value):
        is_block = scalar.style in {"|", ">"}  # ends at the start of the line behind it
        last = scalar.end_mark.line - is_block
        yield from range(scalar.start_mark.line, last + 1)


Edit = tuple[int, int, str]
"""From, to, and what comes there."""


def _emptied(text: str, nodes: Iterable[yaml.ScalarNode], tokens: list[yaml.Token]) -> Iterator[Edit]:
    starts = {
        token.end_mark.index: token.start_mark.index
        for token in tokens
        if isinstance(token, yaml.ScalarToken)
    }
    tags = [token for token in tokens if isinstance(token, yaml.TagToken)]
    for node in nodes:
        # The mark of the node is that of its anchor or tag; the anchor stays, for aliases need it.
        first, end = node.start_mark.index, node.end_mark.index
        start = starts[end]
        for tag in tags:  # an empty text may not be what it asks for
            if first <= tag.start_mark.index < start:
                yield tag.start_mark.index, tag.end_mark.index, ""
        breaks = "".join(_LINE_BREAK.findall(text[start:end]))
        is_block = node.style in {"|", ">"}
        indent = " " * node.end_mark.column if breaks and not is_block else ""
        yield start, end, f'""{breaks}{indent}'


def _without_comments(text: str, secret_lines: set[int], tokens: list[yaml.Token]) -> Iterator[Edit]:
    spans = sorted(
        (token.start_mark.index, token.end_mark.index)
        for token in tokens
        if token.end_mark.index > token.start_mark.index
    )
    begins = [start for start, _ in spans]

    def is_in_token(index: int) -> bool:
        before = bisect_right(begins, index) - 1
        return before >= 0 and index < spans[before][1]

    start = 0
    for number, line in enumerate(_LINE_BREAK.split(text)):
        end = start + len(line)
        places = (start + match.start() for match in _COMMENT.finditer(line))
        place = next((place for place in places if not is_in_token(place)), None)
        if place is not None and (number in secret_lines or _SECRET_NAME.search(text, place, end)):
            yield start + len(text[start:place].rstrip(" \t")), end, ""
        broken = _LINE_BREAK.match(text, end)
        start = broken.end() if broken else end
