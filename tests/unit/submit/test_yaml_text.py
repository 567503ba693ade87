"""YAML that every reader reads alike: PyYAML, libyaml, and kubectl, which reads as Go does."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from clickmill.submit.yaml_text import yaml_text

from .conftest import Reader

NO_TEXTS = [
    *("y", "Y", "yes", "Yes", "YES", "n", "N", "no", "No", "NO", "on", "On", "ON", "off", "Off", "OFF"),
    *("true", "True", "TRUE", "tRue", "false", "False", "FALSE", "~", "null", "Null", "NULL", "", "=", "<<"),
    *(".inf", "-.inf", "+.Inf", ".INF", ".nan", ".NaN", "inf", "Infinity", "-inf", "nan", "NaN"),
    *(
        "0",
        "-1",
        "+1",
        "007",
        "0o17",
        "0O17",
        "0b11",
        "-0b11",
        "0x1F",
        "1_000",
        "0x_1F",
        "190:20:30",
        "-1:30",
    ),
    *(
        "1e5",
        "1E5",
        "1e-5",
        "1234e56",
        "12e03",
        "+.5",
        "-.5",
        ".5",
        "5.",
        "1.5e3",
        "1_0.5",
        "6.8523015e+5",
        "1e999",
    ),
    *(
        "190:20:30.15",
        "0x1p-2",
        "1__0",
        "2026-11-18",
        "2026-11-18T09:30:00Z",
        "2026-11-18 09:30:00",
        "12:30:45",
    ),
    *(
        "- a",
        "-",
        "--",
        "---",
        "...",
        "?",
        "? a",
        ":",
        "a: b",
        "a:",
        ": a",
        "a #b",
        "#a",
        "&a",
        "*a",
        "!a",
        "|",
        ">",
    ),
    *(
        "%a",
        "@a",
        "`a`",
        "'a'",
        '"a"',
        "[a]",
        "{a: b}",
        "a, b",
        "a\\b",
        " a",
        "a ",
        "\ta",
        "a\t",
        "a'b",
        " ",
        "''",
    ),
]
"""What some reader of YAML takes for something else than a text where it stands without quotes."""
TEXTS = {
    "blanks at ends of lines": 'workspace: "./" \n  mode: [train] \t\n\n',
    "blank lines of blanks": "a\n   \nb\n \n",
    "nothing but blanks": "  \n",
    "leading blanks": "    a\n  b\n",
    "leading breaks": "\n\n  a\n",
    "leading tab": "\ta\nb\n",
    "tab after a break": "\n\ta\n",
    "tabs": "all:\n\tcc a.c\t\n",
    "no final break": "a\nb",
    "no final break after blanks": "a\nb  ",
    "two final breaks": "a\n\n",
    "many final breaks": "a\n\n\n\n",
    "one break": "\n",
    "breaks alone": "\n\n\n",
    "windows": 'a: "b" \r\n\r\n  c: \\d\r\n',
    "old mac": "a\rb\r",
    "mixed": "a\r\nb\nc\r\n",
    "other scripts": "# 改变一：代码上传至节点后\nnaïve 😀\n",
    "next line": "a\x85b\n",
    "line separator": "a\u2028b\u2029c\n",
    "byte order mark": "\ufeffa: 1\n",
    "mark inside": "a\ufeffb\n",
    "controls": "a\x00\x07\x1b[0m\x7f\x9f\nb\n",
    "no characters": "\ufffe\uffff\n",
    "ends of documents": "---\na\n...\n--- b\n",
    "comments": "# a\n#b\n",
    "directive": "%YAML 1.1\n",
    "quotes": "'a' \"b\" \\n\r\n",
    "one line of them": "a\x85\u2028\ufeff\r\x00",
    "number in a file": "1e5\n",
}


def config_map(data: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}


def read_all(text: str) -> list[Any]:
    """As Python reads it, and as libyaml does, which Go's reader was made from."""
    return [yaml.load(text, Loader=loader) for loader in (yaml.SafeLoader, yaml.CSafeLoader)]


@pytest.mark.parametrize("text", [*NO_TEXTS, *TEXTS.values()], ids=repr)
def test_texts_are_texts_to_python(text: str) -> None:
    value = {"a": text, "b": [text, [text], {"c": text, text: text}], "z": 1}
    assert read_all(yaml_text(value)) == [value, value]


@pytest.mark.parametrize("text", [text for text in NO_TEXTS if text])
def test_text_that_may_be_something_else_is_quoted(text: str) -> None:
    assert re.fullmatch(r"(['\"]).*\1: (['\"]).*\2\n", yaml_text({text: text}))


@pytest.mark.parametrize(
    "word", ["v1", "kubernetes.io/name", "/job/train_data", "registry.example:5000/a@b", "NoSchedule", "e5"]
)
def test_plain_words_stand_without_quotes(word: str) -> None:
    assert yaml_text({word: word}) == f"{word}: {word}\n"


def test_blanks_at_ends_of_lines_leave_a_text_as_it_is() -> None:
    text = yaml_text({"data": {"config.yaml": "mode: a \n\n  b: \tc \n"}, "z": [{"a": "b\n\n"}]})
    assert text == "data:\n  config.yaml: |\n    mode: a \n\n      b: \tc \nz:\n- a: |+\n    b\n\n"


def test_what_no_block_can_hold_still_stands_line_by_line() -> None:
    text = yaml_text({"a": "mode: b \r\n  c\r\n"})
    assert text == 'a: "\\\n  mode: b \\r\\n\\\n  \\  c\\r\\n"\n'


def test_numbers_booleans_and_empty_collections_are_what_they_are() -> None:
    value = {"a": 1, "b": True, "c": False, "d": None, "e": [], "f": {}, "g": [[], {}, [1, [2]], {"h": -3}]}
    assert read_all(yaml_text(value)) == [value, value]


LETTERS = st.characters(codec="utf-8") | st.sampled_from("\t\n\r \x85\u2028\u2029\ufeff'\"\\#-:|>0e.")
ANY_TEXT = st.text(LETTERS, max_size=12) | st.sampled_from(NO_TEXTS)


@given(
    st.dictionaries(ANY_TEXT, ANY_TEXT | st.lists(ANY_TEXT | st.dictionaries(ANY_TEXT, ANY_TEXT)), min_size=1)
)
def test_any_text_comes_back(value: dict[str, Any]) -> None:
    assert read_all(yaml_text(value)) == [value, value]


MEANINGS = re.compile(
    r"y|yes|n|no|true|false|on|off|~?|null|=|<<|[-+]?(\.|\.?inf(inity)?|\.?nan)"  # words of YAML 1.1
    r"|[-+]?0b[01_]+|[-+]?0o?[0-7_]+|[-+]?0x[0-9a-f_.p+-]+|[-+]?[0-9][0-9_]*"  # whole numbers
    r"|[-+]?[0-9_]*\.?[0-9_]*(e[-+]?[0-9]+)?"  # numbers of YAML 1.1, 1.2 and JSON
    r"|[-+]?[0-9_]+(:[0-9_]+)+(\.[0-9_]*)?"  # by sixty
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*",  # moments
    re.IGNORECASE,
)


@given(st.from_regex(MEANINGS, fullmatch=True) | ANY_TEXT)
def test_nothing_that_has_a_meaning_of_its_own_is_plain(text: str) -> None:
    node = yaml.compose(yaml_text({"a": text}))
    assert isinstance(node, yaml.MappingNode)
    ((_, value),) = node.value
    assert value.style is not None or not MEANINGS.fullmatch(text)


# As kubectl reads it


def test_kubectl_reads_keys_and_values_as_they_are(read_by_kubectl: Reader) -> None:
    texts = [*NO_TEXTS, *TEXTS.values()]
    keys = {text: text for text in texts}
    item = config_map({**{f"k{number}": text for number, text in enumerate(texts)}, **keys})
    assert read_by_kubectl(yaml_text(item)) == [item]


@pytest.mark.parametrize("name", TEXTS)
def test_kubectl_reads_a_text_wherever_it_stands(read_by_kubectl: Reader, name: str) -> None:
    text = TEXTS[name]
    item = {**config_map({}), "data": [text, [text, [text]], {"a": text, "b": [{"c": text}]}]}
    last = config_map({"file": text})
    assert read_by_kubectl(f"{yaml_text(item)}---\n{yaml_text(last)}") == [item, last]


@settings(max_examples=10)
@given(texts=st.lists(ANY_TEXT, min_size=50, max_size=100))
def test_kubectl_reads_any_text_as_it_is(read_by_kubectl: Reader, texts: list[str]) -> None:
    item = {**config_map({text: text for text in texts}), "texts": texts}
    assert read_by_kubectl(yaml_text(item)) == [item]
