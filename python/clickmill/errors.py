"""Everything that clickmill raises on purpose.

ClickmillError
  ConfigError(ValueError)   a configuration or schema that means nothing: place, value, what is allowed
  DataError                 samples that cannot be read: file, line, column, reason
    AbsentSlotError         a slot that has not occurred in a whole pass: slot, column, what did occur
    NoSamplesError          files or a reader in which there is no sample at all
  FormatError               a file of ours that is damaged or of another version: file, place, found
  StateError(RuntimeError)  a call that does not fit the state of the object
  StorageError              a file or folder that cannot be written: which, why
  RemoteError               a store elsewhere that cannot be reached, or fails: URL, why
    AccessError(ConfigError) it does not let this process in
  MemberLostError           a member of a cluster is gone or silent: who waited, for what, how long
  RunFailedError            the coordinator of a cluster has ended the run: why
  DeadlineError             what was waited for has not come in the time that was given for it
  GaveUpError               a pod of a job has been started again as often as it may be: what failed last
  DivergedError             training came to numbers that are not finite: pass, batch, loss
  WireError                 another process of the cluster cannot be reached or understood: which, why
    UnreachableError        nobody listens there: which address, why
    PortTakenError          somebody else listens there: which address, why
    TokenError(ConfigError) the two have not the same token
    EpochError              the cluster has gone on without this process, which may join again
  KubernetesError           a Kubernetes cluster fails or says no: what was asked of it, why
    ClusterUnreachableError its API server does not answer: which, why
    ForbiddenError          this user may not do that: verb, resource, namespace
    NotFoundError           there is no such object or kind
    ConflictError           somebody else has made or changed it in the meantime
    RefusedError            the object is not allowed, by its own rules or those of a webhook
  MissingExtra(ImportError) an optional dependency is not installed: what to install

Terminated(SystemExit)      no error: a signal has told this process to end
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


RUN_ENDED = "the run has ended: "
"""What a trainer puts before the last words of the coordinator, by which a launcher knows them."""


def visible(text: str, *, keep: str = "") -> str:
    """The text with escapes for characters that cannot be seen, but for those to keep.

    What a file holds may else move the cursor of a terminal, or look like a line of ours.
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in keep else letter.encode("unicode_escape").decode()
        for letter in text
    )


class ClickmillError(Exception):
    """Base of all errors that a user can mend; `hint` says how, where there is more to say."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong in a configuration, and where."""

    message: str
    file: str | None = None
    line: int | None = None
    """Counted from 1."""
    column: int | None = None
    """Counted from 1."""
    key: str | None = None
    """Path of the key: `runner.0.epochs`."""
    value: str | None = None
    suggestion: str | None = None
    """The nearest thing that would have been valid."""

    @property
    def place(self) -> str:
        """`file:line:column` as far as it is known."""
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)

    @property
    def order(self) -> tuple[str, int, int, str]:
        """By which problems are told: as their places stand in the files."""
        return (self.file or "", self.line or 0, self.column or 0, self.key or "")

    def __str__(self) -> str:
        parts = [part for part in (self.place, self.key and f"`{self.key}`") if part]
        text = ": ".join([*parts, self.message])
        return visible(f"{text}; did you mean `{self.suggestion}`?" if self.suggestion else text)

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return asdict(self)


class ConfigError(ClickmillError, ValueError):
    """A configuration or schema that cannot mean anything; `problems` lists all that is wrong with it."""

    def __init__(self, message: str, *, hint: str | None = None, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message, hint=hint)
        self.problems = tuple(problems)

    @classmethod
    def of(cls, problems: Sequence[Problem], *, hint: str | None = None) -> ConfigError:
        """One error of all `problems`, a line each."""
        if len(problems) == 1:
            return cls(str(problems[0]), hint=hint, problems=problems)
        lines = "".join(f"\n  {problem}" for problem in problems)
        return cls(f"{len(problems)} problems in the configuration{lines}", hint=hint, problems=problems)


class DataError(ClickmillError):
    """Samples that cannot be read."""


class AbsentSlotError(DataError):
    """A slot that has not occurred in any sample of a pass; raised behind its last batch."""


class NoSamplesError(DataError):
    """Files, or a reader, in which there is no sample at all."""


class FormatError(ClickmillError):
    """A file of ours that is damaged or of another version."""


class StateError(ClickmillError, RuntimeError):
    """A call that does not fit the state of the object it is made on."""


class StorageError(ClickmillError):
    """A file or folder that cannot be written."""


class RemoteError(ClickmillError):
    """A store elsewhere (S3, HDFS, HTTP) cannot be reached, or does not do what it is asked for."""


class AccessError(RemoteError, ConfigError):
    """A store elsewhere does not let this process in; asking again would change nothing."""


class MemberLostError(ClickmillError):
    """A member of a cluster is gone, or has not answered in time."""


class RunFailedError(ClickmillError):
    """The coordinator of a cluster has ended the run; to start this process again would change nothing."""


class DeadlineError(ClickmillError):
    """What was waited for has not come in time; it may still come."""


class GaveUpError(ClickmillError):
    """A pod of a job has failed, and is not to be started again."""


class DivergedError(ClickmillError):
    """Training came to numbers that are not finite; nothing of them has been saved."""


class WireError(ClickmillError):
    """Another process of the cluster cannot be reached, or cannot be understood."""


class UnreachableError(WireError):
    """No connection can be made to the address of another process."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        default = "is it running, and is this its address? `clickmill pserver` prints its own when it listens"
        super().__init__(message, hint=hint or default)


class PortTakenError(WireError):
    """Another process listens where this one should."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint or "give it another port, or 0 for one that is free")


class TokenError(WireError, ConfigError):
    """Another process of the cluster has another token, or one of the two has none."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        default = (
            "give all processes of the cluster the same token: `--token-file FILE`, or CLICKMILL_TOKEN in "
            "the environment; a cluster without a token wants none"
        )
        super().__init__(message, hint=hint or default)


class EpochError(WireError):
    """The cluster has gone on without this process; it may drop what it has under way, and join again."""


class KubernetesError(ClickmillError):
    """A Kubernetes cluster fails or says no."""

    def __init__(
        self, message: str, *, hint: str | None = None, status: int | None = None, reason: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        """HTTP status of the answer; None where there was none."""
        self.reason = reason
        """The cluster's own word for it, such as `AlreadyExists`."""


class ClusterUnreachableError(KubernetesError):
    """The API server of a cluster does not answer."""


class ForbiddenError(KubernetesError):
    """The cluster knows who asks, or does not, and says that they may not."""


class NotFoundError(KubernetesError):
    """There is no such object, namespace or kind."""


class ConflictError(KubernetesError):
    """Somebody else has made or changed the object since it was read."""


class RefusedError(KubernetesError):
    """The object is not allowed: by the rules of its kind, by a webhook or by a quota."""


class MissingExtra(ClickmillError, ImportError):  # noqa: N818  # it says what to do, not what broke
    """An optional dependency is not installed."""


class Terminated(SystemExit):
    """A signal has told this process to end: raised wherever the main thread is then, in users' code too."""
