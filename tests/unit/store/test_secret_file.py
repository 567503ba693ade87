"""Files that hold a secret."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clickmill.errors import ConfigError
from clickmill.ps.wire import read_token
from clickmill.store.remote.access import secret
from clickmill.store.secret_file import MAX_BYTES, read_secret_file


@pytest.mark.parametrize("content", [b"word", b" word \n", b"word\r\n\n", b"x" * MAX_BYTES])
def test_one_line_is_the_secret(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "it").write_bytes(content)
    found = read_secret_file(tmp_path / "it")
    assert (found.text, found.problem) == (content.decode().strip(), "")
    assert "word" not in repr(found)


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        assert read_secret_file(path).problem == "is no regular file"
    assert read_secret_file(tmp_path).problem == "cannot be read: Is a directory"


def test_link_to_a_file_is_followed_as_in_a_volume_of_secrets(tmp_path: Path) -> None:
    (tmp_path / "it").write_text("word")
    (tmp_path / "link").symlink_to("it")
    assert read_secret_file(tmp_path / "link").text == "word"


@pytest.mark.parametrize(
    ("mode", "is_readable"), [(0o600, False), (0o640, True), (0o604, True), (0o611, False)]
)
def test_mode_says_who_reads_it(tmp_path: Path, mode: int, is_readable: bool) -> None:
    (tmp_path / "it").write_text("word")
    (tmp_path / "it").chmod(mode)
    assert read_secret_file(tmp_path / "it").is_readable_by_others is is_readable


def test_variables_and_tokens_name_the_file_and_not_what_is_in_it(tmp_path: Path) -> None:
    file = tmp_path / "it"
    file.write_bytes(b"word\nword")
    with pytest.raises(
        ConfigError, match=f"^A_FILE names `{file}`, which has several lines; a secret is one$"
    ):
        secret("A", {"A_FILE": str(file)})
    with pytest.raises(ConfigError, match=f"^the token file `{file}` has several lines; a secret is one$"):
        read_token(str(file))


def test_name_that_no_file_can_have_is_told(tmp_path: Path) -> None:
    assert read_secret_file(Path("a\0")).problem == "cannot be read: embedded null byte"
    with pytest.raises(ConfigError, match=r"^A_FILE: `~no-such-user/x` begins with"):
        secret("A", {"A_FILE": "~no-such-user/x"})


def test_variable_that_is_no_text_is_refused_without_what_it_holds() -> None:
    with pytest.raises(ConfigError, match=r"^A: has bytes that are not UTF-8") as error:
        secret("A", {"A": os.fsdecode(b"hunter2\xff")})
    assert "hunter2" not in str(error.value)
