"""Secrets taken out of files with the shape of a backend.yaml."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from clickmill.submit.redaction import without_secrets

LETTERS = "abcXYZ019-,:#'\"\\ %*&!|>{}[]"
SECRETS = st.text(LETTERS, min_size=8, max_size=20).map(lambda text: f"zq{text}qz")


def block(text: str, style: str, indent: str) -> str:
    return f"{style}\n{indent}    {text}"


STYLES = {
    "single": lambda text, _: "'" + text.replace("'", "''") + "'",
    "double": lambda text, _: '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"',
    "lines": lambda text, indent: (
        '"' + text.replace("\\", "\\\\").replace('"', '\\"') + f"\n{indent}    more" + '"'
    ),
    "literal": lambda text, indent: block(text, "|", indent),
    "stripped": lambda text, indent: block(text, "|-", indent),
    "folded": lambda text, indent: block(text, ">", indent) + f"\n{indent}    more",
    "kept": lambda text, indent: block(text, ">+", indent) + "\n",
    "plain": lambda _text, _indent: "zq-plain,word qz",
    "plain lines": lambda _text, indent: f"zq-plain\n{indent}    word qz",
    "number": lambda _text, _indent: "1234567",
    "tagged": lambda _text, _indent: "!!int 1234567",
}
BLOCKS = {"literal", "stripped", "folded", "kept"}


def emptied(value: Any) -> Any:
    """What the copy of a file is to mean."""
    value = copy.deepcopy(value)
    for section, key in (("config", "fs_ugi"), ("submit", "ak"), ("submit", "sk")):
        if key in value.get(section, {}):
            value[section][key] = ""
    return value


@settings(deadline=None)  # busy machines
@given(
    secrets=st.tuples(SECRETS, SECRETS, SECRETS),
    styles=st.tuples(*[st.sampled_from(sorted(STYLES))] * 3),
    anchors=st.tuples(*[st.sampled_from(["", "&a%d ", "&a%d\n        "])] * 3),
    comments=st.tuples(*[st.sampled_from(["", "  # zq was qz", " #"])] * 3),
    is_flow=st.booleans(),
    is_crlf=st.booleans(),
    has_mark=st.booleans(),
)
def test_copy_means_the_same_but_for_secrets(
    secrets: tuple[str, ...],
    styles: tuple[str, ...],
    anchors: tuple[str, ...],
    comments: tuple[str, ...],
    is_flow: bool,
    is_crlf: bool,
    has_mark: bool,
) -> None:
    written = []
    for number, (secret, style, anchor, comment) in enumerate(
        zip(secrets, styles, anchors, comments, strict=True)
    ):
        if is_flow and style in BLOCKS:
            style = "double"  # noqa: PLW2901
        anchor = anchor % number if anchor else ""  # noqa: PLW2901
        end = "" if style in BLOCKS else comment
        written.append((anchor + STYLES[style](secret, "  "), end))
    (ugi, ugi_end), (ak, ak_end), (sk, sk_end) = written
    lines = [
        "# a word",
        "backend: PaddleCloud  # where",
        "config:",
        f"  fs_ugi: {ugi}{ugi_end}",
        "  fs_name: 'hdfs://a # b'  # stays",
        *(
            [f'submit: {{files: [a, b], ak: {ak}, "sk": {sk}, nodes: 2}}{sk_end}']
            if is_flow
            else [
                "submit:",
                f"  ak: {ak}{ak_end}",
                "  nodes: 2",
                f"  sk: {sk}{sk_end}",
                "  group: |",
                "    # g",
            ]
        ),
        "more: {a: 1}",
        "",
    ]
    text = ("\ufeff" if has_mark else "") + "\n".join(lines)
    text = text.replace("\n", "\r\n") if is_crlf else text
    found = without_secrets(text)
    assert yaml.safe_load(found.text) == emptied(yaml.safe_load(text))
    assert "zq" not in found.text
    assert "1234567" not in found.text
    assert found.text.count("\n") == text.count("\n")
    assert found.text.count("\r\n") == text.count("\r\n")
    for kept in ("# a word", "# where", "# stays"):
        assert kept in found.text
    assert without_secrets(found.text).text == found.text


def test_all_but_the_secret_is_what_was_written() -> None:
    text = (
        "config: {fs_ugi: 'a,b' , fs_name: x}\nsubmit:\n    sk:   'k'\n    ak: |\n      old\n\n    nodes: 2\n"
    )
    assert without_secrets(text).text == (
        'config: {fs_ugi: "" , fs_name: x}\nsubmit:\n    sk:   ""\n    ak: ""\n\n\n    nodes: 2\n'
    )


def test_anchor_stays_where_its_alias_does() -> None:
    text = "config: {fs_ugi: &u 'me,pass-word'}\nsubmit: {ak: *u}\nkubernetes: {env: {A: *u}}\n"
    found = without_secrets(text)
    assert yaml.safe_load(found.text)["kubernetes"]["env"] == {"A": ""}
    assert found.secrets == ("me,pass-word",)


@pytest.mark.parametrize(
    "text",
    [
        "base: &b {ak: zq-1, sk: zq-2}\nsubmit: {<<: *b, nodes: 2}\n",
        "a: &a {ak: zq-1}\nb: &b {sk: zq-2}\nsubmit:\n  <<: [*a, *b]\n",
        "word: &w zq-1\nsubmit: {ak: *w}\n",
        "submit: {ak: zq-1, ak: zq-2}\n",
        "submit:\n  ? sk\n  : zq-1\n",
        '{"submit": {"sk": "zq-1"}}',
        "config: {fs-ugi: zq-1}\n",
        "submit: {ak: [zq-1, {a: zq-2}]}\n",
        "a: 1\n---\nsubmit: {ak: zq-1}\n",
        "submit:\n  ak:\n    # zq-1\n    zq-2\n",
        "submit:\n  ak: &a  # zq-1\n    zq-2\n",
    ],
)
def test_secret_is_found_however_it_is_written(text: str) -> None:
    found = without_secrets(text)
    assert "zq" not in found.text
    list(yaml.safe_load_all(found.text))


def test_comments_that_name_a_secret_key_go_and_others_stay() -> None:
    text = "submit:\n  ak: 'new'  # old\n  # sk: older\n  #fs_ugi was oldest\n  group: 'a # ak'  # task\n"
    assert without_secrets(text).text == "submit:\n  ak: \"\"\n\n\n  group: 'a # ak'  # task\n"


@pytest.mark.parametrize(
    "text",
    ["mode: train  # ak\n", "other: {ak: a}\nconfig: {a: b}\n", "ak: a\n", "def ak(config: int): ...\n", ""],
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    found = without_secrets(text)
    assert (found.text, found.secrets) == (text, ())


def test_line_of_a_secret_is_told_where_the_text_is_no_yaml() -> None:
    found = without_secrets("submit:\n\tak: ''\n\tsk: a\n")
    assert (found.secrets, found.unreadable_line) == ((), 3)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("submit: {ak: OTHERKEY99, sk: [}\n", 1),
        ("submit:\n  files: a\n  ak:OTHERKEY99\n", 3),
        ("submit:\n  ak:\n    OTHERKEY99\n  sk: [\n", 2),
        ("submit:\r\n  ak:  # mine\r\n\r\n    OTHERKEY99\r\n  sk: [\r\n", 2),
        ("submit:\n  ak: |\n    OTHERKEY99\n  sk: [\n", 2),
        ("submit:\n  ak: ''\n  sk: a: b\n", 3),
        ('{"submit": {"ak":"", "sk":"OTHERKEY99",]}', 1),
        ("jobs:\n- config:\n  - fs-ugi: me,OTHERKEY99\n  x: [\n", 3),
        ("Our file:\n\n```yaml\nsubmit:\n  sk: OTHERKEY99\n```\n", 5),
    ],
)
def test_line_of_a_filled_key_is_found_however_broken_the_text_is(text: str, line: int) -> None:
    assert without_secrets(text).unreadable_line == line


@pytest.mark.parametrize(
    "text",
    [
        "submit:\n  ak:\n  sk: ~\nconfig: {fs_ugi: }\nx: [\n",
        "submit: {ak: , sk: null, x: [}\n",
        "submit:\n  ak: ''  # none\n  sk: \"\"\nx: [\n",
        "task: 1\nsubmit:\n  task: a\n  risk: b\n  mask: [\n",
        "The keys `ak:` and `sk:` stand below `submit:`: [\n",
        "ak: OTHERKEY99\nx: [\n",
        "submit: 1\nak::value(x)\nsk := f()\nx: [\n",
    ],
)
def test_broken_text_without_a_filled_key_is_no_backend_yaml(text: str) -> None:
    assert without_secrets(text).unreadable_line is None


def test_files_with_secrets_are_named() -> None:
    assert without_secrets("submit: {ak_file: one}\nconfig: {fs_ugi-file: two}\n").named_files == (
        "two",
        "one",
    )


def test_aliases_that_blow_up_are_walked_once() -> None:
    levels = "".join(f"l{n}: &l{n} [*l{n - 1}, *l{n - 1}]\n" for n in range(1, 60))
    text = f"l0: &l0 [zq]\n{levels}submit: {{ak: *l59}}\n"
    assert "zq" not in without_secrets(text).text
