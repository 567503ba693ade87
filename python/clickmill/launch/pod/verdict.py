"""The exit code of a pod: what it says to whoever starts pods again.

0         the run is over, and well
2, 3, 4   configuration, data, a damaged file: another try would end in the same way
5         failed for good in another way, or as often as it may
143       told to end by whoever deletes the pod; it is made again, if at all, without being counted
others    started again, and counted
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill.launch.failure import FINAL_KINDS

if TYPE_CHECKING:
    from clickmill.launch.pod.tries import Tries

FAILURE = 1
GAVE_UP = 5
TERMINATED = 143
FINAL_CODES = frozenset({2, 3, 4, GAVE_UP})
_SIGNALLED = frozenset({130, TERMINATED})


def pod_exit_code(
    code: int, *, kind: str | None, is_asked: bool, is_wanted_elsewhere: bool, tries: Tries
) -> int:
    """For a role that ended with `code` and, perhaps, an error of `kind`.

    `is_asked`: this pod was told to end; `is_wanted_elsewhere`: though nobody deletes it.
    """
    if code == 0 or code in FINAL_CODES:
        return code
    if is_asked:
        return FAILURE if is_wanted_elsewhere else TERMINATED
    if kind in FINAL_KINDS or tries.is_last:
        return GAVE_UP
    # A process that somebody ended from within is not a pod that was told to.
    return FAILURE if code in _SIGNALLED else code
