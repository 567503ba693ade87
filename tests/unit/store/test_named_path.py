"""Paths as people write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from clickmill.errors import ConfigError
from clickmill.store.named_path import expanded, home, is_file, is_folder, resolved


def test_home_of_this_user_is_what_home_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert expanded("~/a") == tmp_path / "a"
    assert home() == tmp_path


@pytest.mark.parametrize("text", ["~no-such-user/x", "~a\0/x", "~\ud800"])
def test_home_of_nobody_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(ConfigError, match=r"knows no user .*; name the folder itself, or write `\./~"):
        expanded(text)
    assert resolved(text, Path()) is None


def test_home_is_none_where_nothing_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "~")  # what Python has for a user without an entry
    assert home() is None


def test_file_in_this_folder_may_begin_with_a_tilde() -> None:
    assert expanded("./~no-such-user.py") == Path("~no-such-user.py")


def test_what_cannot_be_looked_at_is_neither_file_nor_folder(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    for name in ("x" * 300, "a\0", "circle", "absent"):
        assert not is_file(tmp_path / name)
        assert not is_folder(tmp_path / name)
    for name in ("a\0", "circle"):
        assert resolved(name, tmp_path) is None
