"""Functions of the native core, by name.

Python files and the extension can come from different builds in a working copy; then a function is missing,
and the remedy is to build again.
"""

from __future__ import annotations

from typing import Any

from clickmill.errors import StateError


def core_function(name: str) -> Any:
    """The function; raises StateError where this build of the core has none of that name."""
    from clickmill import _core

    function = getattr(_core, name, None)
    if function is None:
        hint = "build it again with `make setup`, or install the package again"
        raise StateError(f"this build of the core has no `{name}`", hint=hint)
    return function
