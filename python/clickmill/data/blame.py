"""A user's reader class, called: what its code raises becomes an error that names its file, line and cause.

Every try would end in the same way, and a traceback hides whose code it was. Not so what the system says, for
a file server may have been away: an OSError is left as it is. `sys.exit` is an error like any other: how a
run ends is not for its reader to say.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
import traceback
from typing import TYPE_CHECKING, Any

from clickmill.errors import ClickmillError, ConfigError, DataError, Terminated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextlib.contextmanager
def reading(reader_class: type[Any], what: Callable[[], str]) -> Iterator[None]:
    """Code of `reader_class` runs here; `what` says what it failed at."""
    try:
        yield
    except (ClickmillError, OSError, Terminated):
        raise
    except (Exception, SystemExit) as error:
        place = _place_of(error, *_origin(reader_class))
        message = f"reader `{reader_class.__name__}` failed {what()}: {_cause(error)}"
        raise DataError(message, hint=place) from error


@contextlib.contextmanager
def importing(file: str) -> Iterator[None]:
    """The module `file` is imported here; it must be absolute."""
    try:
        yield
    except (ClickmillError, OSError, Terminated):
        raise
    except (Exception, SystemExit) as error:
        message = f"reader file `{file}` cannot be imported: {_cause(error)}"
        raise ConfigError(message, hint=_place_of(error, file, 1)) from error


def _cause(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _origin(reader_class: type[Any]) -> tuple[str | None, int]:
    """File and line of the class."""
    file = getattr(sys.modules.get(reader_class.__module__), "__file__", None)
    try:
        return file, inspect.getsourcelines(reader_class)[1]
    except (OSError, TypeError):  # its source is not there any more, or never was
        return file, 1


def _place_of(error: BaseException, file: str | None, line: int) -> str:
    """Where the user's file comes into it; `line` where none of its code ran."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return f"raised in `{file}`, line {error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == file]
    if own:
        return f"raised in `{file}`, line {own[-1].lineno}, `{own[-1].name}`"
    if file is None:
        return f"raised in `{frames[-1].filename}`, line {frames[-1].lineno}, `{frames[-1].name}`"
    return f"see `{file}`, line {line}"
