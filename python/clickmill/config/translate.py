"""pydantic's errors as problems with places, in our words, with the nearest valid key.

A value is shown where it helps. Never shown are values of secret keys, what stands in the place of a whole
section (`submit: ak:KEY`, where a space is missing), more than the first word of an unknown key beside them
(`submit: {ak:KEY}`), and values of overrides, of which the place says all that is told.
"""

from __future__ import annotations

import re
import types
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeGuard, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr, ValidationError

from clickmill._section import Section, known_keys
from clickmill.config.document import Document, KeyPath, dotted
from clickmill.config.overrides import is_override

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_core import ErrorDetails

    from clickmill.errors import Problem

_WORDS = {
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "dict_type": "must be a mapping of keys to values",
    "finite_number": "must be a finite number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number",
    "int_type": "must be a whole number",
    "list_type": "must be a list",
    "model_attributes_type": "must be a mapping of keys to values",
    "model_type": "must be a mapping of keys to values",
    "string_type": "must be text",
    "tuple_type": "must be a list",
}
_FIRST_WORD = re.compile(r"([\w-]*).*", re.DOTALL)
_WANTS_KEYS = frozenset({"dict_type", "model_attributes_type", "model_type"})


def problems_of(error: ValidationError, document: Document, section: type[BaseModel]) -> list[Problem]:
    """One problem for each error, in the order of the file."""
    problems = [
        _problem(details, document, section)
        for details in error.errors(include_url=False)
        if not _is_echo(details, document, section)
    ]
    return sorted(
        set(problems), key=lambda problem: (problem.line or 0, problem.column or 0, problem.key or "")
    )


def nearest(word: object, known: Iterator[str] | tuple[str, ...] | list[str]) -> str | None:
    """The known word that is most like `word`; None where none is."""
    spelled = {str(name).lower(): name for name in known}
    matches = get_close_matches(str(word).lower(), list(spelled), n=1, cutoff=0.6)
    return spelled[matches[0]] if matches else None


def listed(words: Iterator[str] | tuple[str, ...] | list[str]) -> str:
    """Words in backticks, separated by commas."""
    return ", ".join(f"`{word}`" for word in words)


def written_path(document: Document, section: type[BaseModel], path: KeyPath) -> KeyPath:
    """The path with each key in the spelling of the file, as far as the file has it."""
    value, written = document.value, path
    for position, part in enumerate(path):
        if isinstance(value, dict):
            key = _written_key(value, part, _sections_at(section, path[:position]))
            written = (*written[:position], part if key is None else key, *written[position + 1 :])
            value = None if key is None else value[key]
        else:
            value = value[part] if isinstance(value, list) and _is_index(part, value) else None
    return written


def _is_echo(details: ErrorDetails, document: Document, section: type[BaseModel]) -> bool:
    """Pydantic counts only valid items: a list whose items are wrong is not empty as well."""
    return details["type"] == "too_short" and bool(document.get(_path_in(document, section, details["loc"])))


def _problem(details: ErrorDetails, document: Document, section: type[BaseModel]) -> Problem:
    path = _path_in(document, section, details["loc"])
    kind, context = details["type"], details.get("ctx", {})
    key = dotted(path)
    if kind == "extra_forbidden":
        known = _keys_at(section, details["loc"][:-1])
        place = document.key_place(path)
        word, meant = str(path[-1]), str(details["loc"][-1])
        if any(_is_secret_at(section, (*details["loc"][:-1], name)) for name in known):
            word, meant = _FIRST_WORD.sub(r"\1", word), _FIRST_WORD.sub(r"\1", meant)
        suggestion = nearest(meant, sorted(known))
        shown = dotted((*path[:-1], word if word == path[-1] else f"{word}..."))
        message = "unknown key" if suggestion else f"unknown key; known keys here: {listed(sorted(known))}"
        return place.problem(message, key=shown, suggestion=suggestion)
    if kind == "missing":
        parent = _path_in(document, section, details["loc"][:-1])
        message = _missing_words(section, details["loc"][:-1], details["loc"][-1])
        return document.value_place(parent).problem(message, key=dotted((*parent, details["loc"][-1])))
    if kind in {"union_tag_not_found", "union_tag_invalid"}:
        tag = "kind" if "kind" in str(context["discriminator"]) else "class"
        if kind == "union_tag_not_found":
            message = _missing_words(section, details["loc"], tag)
            return document.value_place(path).problem(message, key=dotted((*path, tag)))
        path = (*path, tag) if isinstance(document.get(path), dict) else path
        key = dotted(path)
    value = document.get(path)
    allowed = _allowed(kind, context)
    place = document.value_place(path)
    message, suggestion = _words(kind, context, details["msg"]), None
    if allowed:
        message, suggestion = f"must be one of {listed(allowed)}", None
        if isinstance(value, str):
            suggestion = nearest(value, allowed)
    is_typed = is_override(place)
    is_hidden = is_typed or kind in _WANTS_KEYS or _is_secret_at(section, details["loc"])
    shown = None if is_hidden else _shown(value)
    if is_typed and isinstance(value, str):
        message = message.replace(f"`{value}`", "this")
    message = f"{message}, not {shown}" if shown and kind != "value_error" else message
    return place.problem(message, key=key, value=shown, suggestion=suggestion)


def _words(kind: str, context: dict[str, Any], message: str) -> str:
    comparisons = {
        "greater_than_equal": ("ge", "or more"),
        "less_than_equal": ("le", "or less"),
    }
    if kind in comparisons:
        name, words = comparisons[kind]
        return f"must be {context[name]} {words}"
    if kind == "greater_than":
        return f"must be more than {context['gt']}"
    if kind == "less_than":
        return f"must be less than {context['lt']}"
    if kind == "too_short":
        return "must not be empty"
    if kind == "value_error":
        return str(context["error"])
    plain = message[:1].lower() + message[1:]
    return _WORDS.get(kind, plain)


def _missing_words(section: type[BaseModel], location: tuple[str | int, ...], key: str | int) -> str:
    """With what the key is for, as far as its section says so, or what it can be."""
    fields = [
        field
        for candidate in _sections_at(section, location)
        for name, field in candidate.model_fields.items()
        if key in {name, field.alias}
    ]
    choices = [
        str(choice)
        for field in fields
        if get_origin(field.annotation) is Literal
        for choice in get_args(field.annotation)
    ]
    words = f"required key is missing; add `{key}`"
    if choices:
        return f"{words}, one of {listed(list(dict.fromkeys(choices)))}"
    description = next((field.description for field in fields if field.description), "")
    sentence = description.partition(". ")[0].replace("\n", " ").rstrip(".")
    return f"{words}: {sentence[:1].lower()}{sentence[1:]}" if sentence else words


def _allowed(kind: str, context: dict[str, Any]) -> list[str]:
    if kind == "literal_error":
        text = str(context["expected"]).replace(" or ", ", ")
    elif kind == "union_tag_invalid":
        text = str(context["expected_tags"])
    else:
        return []
    return [word.strip().strip("'") for word in text.split(",")]


def _shown(value: Any) -> str | None:
    if value is None or isinstance(value, dict | list):
        return None
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"`{text if len(text) <= 60 else text[:57] + '...'}`"


def _path_in(document: Document, section: type[BaseModel], location: tuple[str | int, ...]) -> KeyPath:
    """The location without the tags of unions, which pydantic adds, and with keys as they were written."""
    path: KeyPath = ()
    value = document.value
    for position, part in enumerate(location):
        is_last = position == len(location) - 1
        if isinstance(value, dict):
            written = _written_key(value, part, _sections_at(section, location[:position]))
            if written is not None:
                path, value = (*path, written), value[written]
            elif is_last:
                path = (*path, part)
        elif isinstance(value, list) and _is_index(part, value):
            path, value = (*path, part), value[part]
    return path


def _written_key(mapping: dict[str, Any], key: str | int, sections: list[type[BaseModel]]) -> str | None:
    """How `key` is spelled in a mapping; the last one where it is there in several spellings: that counts."""
    spellings = [
        written
        for written in mapping
        if written == key
        or any(issubclass(section, Section) and section.canonical_key(written) == key for section in sections)
    ]
    return spellings[-1] if spellings else None


def _is_index(part: str | int, items: list[Any]) -> TypeGuard[int]:
    return isinstance(part, int) and part < len(items)


def _is_secret_at(section: type[BaseModel], location: tuple[str | int, ...]) -> bool:
    sections = _sections_at(section, location[:-1])
    fields = (each.model_fields.get(str(location[-1])) for each in sections) if location else ()
    return any(field is not None and _is_secret(field.annotation) for field in fields)


def _is_secret(annotation: Any) -> bool:
    return annotation is SecretStr or any(map(_is_secret, get_args(annotation)))


def _keys_at(section: type[BaseModel], location: tuple[str | int, ...]) -> set[str]:
    """Keys that a section at this location knows."""
    return {key for candidate in _sections_at(section, location) for key in known_keys(candidate)}


def _sections_at(section: type[BaseModel], location: tuple[str | int, ...]) -> list[type[BaseModel]]:
    """What can stand at this location; follows pydantic's tags through unions."""
    candidates: list[type[BaseModel]] = [section]
    for part in location:
        followed = [
            model
            for candidate in candidates
            for name, field in candidate.model_fields.items()
            if part in {name, field.alias}
            for model in _models(field.annotation)
        ]
        tagged = [candidate for candidate in candidates if part in _tags(candidate)]
        candidates = followed or tagged or candidates
    return candidates


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) in {Annotated, Union, types.UnionType, list, tuple, dict}:
        for argument in get_args(annotation):
            yield from _models(argument)


def _tags(model: type[BaseModel]) -> set[Any]:
    return {
        tag
        for name in ("kind", "class_name")
        if name in model.model_fields
        for tag in get_args(model.model_fields[name].annotation)
        if get_origin(model.model_fields[name].annotation) is Literal
    }
