"""What to say, and to type, when the account of a pod may not do what the launcher has to."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from clickmill.errors import ConfigError, StateError
from clickmill.launch.pod.api_server import Refused, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable

    from clickmill.launch.pod.api_server import ApiServer
    from clickmill.launch.pod.deadline import Deadline

T = TypeVar("T")

_BETWEEN_S = 1.0
_SETTLING_S = 10.0
"""A Role that was made with the pod may take a moment to be known to the API server."""
_FORBIDDEN = frozenset({401, 403})


def asked(
    ask: Callable[[], T],
    *,
    deadline: Deadline,
    tell: Callable[[str], None],
    denied: Callable[[str], ConfigError],
) -> T:
    """What `ask` gives, tried again while the API server is away, and for a moment while it says no.

    `denied` makes the error of its words. Raises StateError when the time is up, and Refused for what is
    refused for another reason.
    """
    patience = deadline.sooner(_SETTLING_S)
    while True:
        try:
            return ask()
        except Refused as error:
            if error.status not in _FORBIDDEN:
                raise
            if patience.is_over:
                raise denied(str(error)) from None
            tell(f"the API server says no, which may change in a moment: {error}")
        except Unreachable as error:
            if deadline.is_over:
                raise StateError(
                    f"the API server did not answer within {deadline.seconds:g} seconds: {error}"
                ) from error
            tell(f"waits for the API server: {error}")
        time.sleep(_BETWEEN_S)


def pods_denied(api: ApiServer, namespace: str, job: str) -> Callable[[str], ConfigError]:
    """For an account that may not look at pods."""
    return _denied(
        api,
        namespace,
        f"{job}-pods",
        "`get`, `list` and `watch` on pods",
        "--verb=get,list,watch --resource=pods",
    )


def secret_denied(api: ApiServer, namespace: str, job: str, secret: str) -> Callable[[str], ConfigError]:
    """For an account that may not read or fill the Secret of the job."""
    return _denied(
        api,
        namespace,
        f"{job}-token",
        f"`get` and `update` on Secret `{secret}`",
        f"--verb=get,update --resource=secrets --resource-name={secret}",
    )


def _denied(
    api: ApiServer, namespace: str, role: str, rights: str, options: str
) -> Callable[[str], ConfigError]:
    def denied(words: str) -> ConfigError:
        account = api.account_name
        return ConfigError(
            f"ServiceAccount `{account}` has no Role that allows {rights}: {words}",
            hint=f"kubectl -n {namespace} create role {role} {options} && kubectl -n {namespace} create "
            f"rolebinding {role} --role={role} --serviceaccount={namespace}:{account}",
        )

    return denied
