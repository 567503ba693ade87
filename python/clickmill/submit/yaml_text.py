"""YAML that every reader reads alike, and people too.

What a text without quotes means depends on who reads it: `1e5` is a text to PyYAML and a number to kubectl,
`n` a boolean to kubectl and a text to others. So texts are quoted, but for words that nobody takes for
anything else. Texts of several lines stand as they are, in literal blocks. A block cannot hold everything:
readers make the same break of all kinds of line breaks, and refuse control characters. Such texts are quoted,
line by line.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORD = re.compile(r"[A-Za-z/](?:[A-Za-z0-9_./:@-]*[A-Za-z0-9_/])?")
_MEANINGS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "inf", "infinity", "nan"})
"""Words that some reader takes for a boolean, for nothing or for a number; in any case."""
_SHOWN = "\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff"
"""Characters that may stand as they are: no controls, no line breaks of any kind, no byte order mark."""
_LINE = re.compile(f"[{_SHOWN}]*")
_BLOCK = re.compile(f"[\t\n{_SHOWN}]*")
_ESCAPED = re.compile(f'["\\\\]|[^{_SHOWN}]')
_WHOLE_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\t": "\\t", "\r": "\\r", "\n": "\\n"}


def yaml_text(value: Any) -> str:
    """A document of a mapping or list. What is in it are these, texts, whole numbers, booleans and None."""
    return "".join(f"{line}\n" for line in _lines(value, 0))


def _lines(value: dict[str, Any] | list[Any], indent: int) -> Iterator[str]:
    """Those of a mapping or list that is not empty; a block is one of them, with its breaks."""
    pad = " " * indent
    if isinstance(value, dict):
        for key, item in value.items():
            head = f"{pad}{_key(key)}:"
            if _is_nested(item):
                yield head
                yield from _lines(item, indent if isinstance(item, list) else indent + 2)
            else:
                yield f"{head} {_scalar(item, indent)}"
        return
    for item in value:
        if _is_nested(item):
            first, *others = _lines(item, indent + 2)
            yield f"{pad}- {first[indent + 2 :]}"
            yield from others
        else:
            yield f"{pad}- {_scalar(item, indent)}"


def _is_nested(value: Any) -> bool:
    return isinstance(value, dict | list) and bool(value)


def _scalar(value: Any, indent: int) -> str:
    match value:
        case str():
            return _text(value, indent)
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case {} | []:
            return "{}" if isinstance(value, dict) else "[]"
    raise TypeError(f"no YAML for a value of {type(value)}")


def _key(text: str) -> str:
    return _short(text) or f'"{_escaped(text)}"'


def _text(text: str, indent: int) -> str:
    if short := _short(text):
        return short
    if "\n" not in text:
        return f'"{_escaped(text)}"'
    pad = " " * (indent + 2)
    return _block(text, pad) if _BLOCK.fullmatch(text) else _quoted_lines(text, pad)


def _short(text: str) -> str:
    """A text that needs no escapes; empty for all others."""
    if _WORD.fullmatch(text) and text.lower() not in _MEANINGS:
        return text
    return f"'{text}'" if _LINE.fullmatch(text) and "'" not in text else ""


def _block(text: str, pad: str) -> str:
    # Where it begins with a blank, readers cannot find out by themselves how deep it is indented.
    depth = "2" if text[0] in " \t\n" else ""
    body = text.removesuffix("\n")
    end = "-" if body == text else "+" if not body or body.endswith("\n") else ""
    return "\n".join([f"|{depth}{end}", *(pad + line if line else "" for line in body.split("\n"))])


def _quoted_lines(text: str, pad: str) -> str:
    # A break behind a backslash is none, and the blanks that follow it are indentation.
    lines = [re.sub("^ ", r"\\ ", _escaped(line)) for line in _WHOLE_LINE.findall(text)]
    return '"' + "".join(f"\\\n{pad}{line}" for line in lines) + '"'


def _escaped(text: str) -> str:
    return _ESCAPED.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    letter = found[0]
    code = ord(letter)
    return _ESCAPES.get(letter) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
