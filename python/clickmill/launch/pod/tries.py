"""How often pods of a job have been started again, and how often they may be.

Whoever starts them again counts, and tells each pod how far the count was when it was made. When it is used
up the last pod is removed, and its words with it: so a launcher gives up by itself before, and its pod stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clickmill.errors import GaveUpError
from clickmill.launch.variables import Variables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clickmill.errors import ClickmillError

RESTARTS = ("CLICKMILL_RESTARTS",)
MAX_RESTARTS = ("CLICKMILL_MAX_RESTARTS",)
UNTOLD = "pods of the job have been started again"
"""How the words begin of a pod that gives up without knowing why others failed."""


@dataclass(frozen=True, slots=True)
class Tries:
    """Restarts so far, of all pods of the job, when this one was made."""

    restarts: int | None = None
    """None: nobody counts."""
    max_restarts: int | None = None

    @property
    def is_last(self) -> bool:
        return (
            self.restarts is not None and self.max_restarts is not None and self.restarts >= self.max_restarts
        )

    def check(self) -> None:
        """Before anything is done: GaveUpError where there should be no such pod any more."""
        if self.restarts is None or self.max_restarts is None or self.restarts <= self.max_restarts:
            return
        raise GaveUpError(
            f"{UNTOLD} {self.restarts} times; this one cannot tell why those before it ended",
            hint="`clickmill job status` and `kubectl get events` tell how they did; "
            "`kubernetes.max_restarts` says how often they are started again",
        )

    def given_up(self, error: ClickmillError) -> GaveUpError:
        """A failure that would be worth another try, if there was one left."""
        words = f"{error}; this was the last of {self.max_restarts} restarts"
        return GaveUpError(words, hint=error.hint)


def read_tries(environ: Mapping[str, str]) -> Tries:
    """As the manifest says."""
    variables = Variables(environ)
    tries = Tries(variables.count(*RESTARTS), variables.count(*MAX_RESTARTS))
    variables.check(hint="they come from the manifest of the job")
    return tries
