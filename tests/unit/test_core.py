"""What `_core.pyi` says of the extension."""

from __future__ import annotations

from pathlib import Path

import clickmill


def test_the_stubs_of_the_core_leave_no_type_open() -> None:
    """`Incomplete` is what the stub writer puts for a Rust type without a hint; mypy takes it for `Any`."""
    stubs = Path(clickmill.__file__).with_name("_core.pyi").read_text(encoding="utf-8")
    assert [line.strip() for line in stubs.splitlines() if "Incomplete" in line] == []
