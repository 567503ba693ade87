"""What a cluster answers, as errors of ours: what was asked, why it was not done, what to do."""

from __future__ import annotations

import re
import ssl
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx2
from lightkube.core.exceptions import ConfigError as LightkubeConfigError

from clickmill.errors import (
    ClusterUnreachableError,
    ConfigError,
    ConflictError,
    ForbiddenError,
    KubernetesError,
    NotFoundError,
    RefusedError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_FORBIDDEN = re.compile(
    r'User "(?P<user>[^"]+)" cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)" '
    r'in API group "(?P<group>[^"]*)"(?: in the namespace "(?P<namespace>[^"]+)")?'
)
_WEBHOOK = re.compile(
    r'admission webhook "(?P<webhook>[^"]+)" denied the request:\s*(?P<reason>.*)', re.DOTALL
)
_DEAD_WEBHOOK = re.compile(r'failed calling webhook "(?P<webhook>[^"]+)"')
_BUSY = "the cluster is busy or starting; try again in a moment"
_KINDS: dict[int, tuple[type[KubernetesError], str | None]] = {
    400: (RefusedError, None),
    401: (ForbiddenError, "the credentials of the kubeconfig are unknown or have run out: sign in again"),
    404: (NotFoundError, None),
    409: (ConflictError, "try again"),
    410: (KubernetesError, "try again"),
    422: (RefusedError, None),
    429: (KubernetesError, _BUSY),
    500: (KubernetesError, _BUSY),
    503: (KubernetesError, _BUSY),
    504: (KubernetesError, _BUSY),
}
"""By HTTP status: kind of error, and what to do."""
_RULES = {
    "exceeded quota": "`kubectl describe resourcequota` shows what is left; ask for less, or have it raised",
    "violates PodSecurity": "this namespace allows no `host_path`: use a claim, or another namespace",
    "is being terminated": "wait until the namespace is gone, or use another one",
}
"""What the API server forbids to everybody, by its words: what to do."""
UNREACHABLE_HINT = (
    "is the cluster up, and are KUBECONFIG and the context those of it? `kubectl cluster-info` tells; "
    "behind a proxy, NO_PROXY has to name the API server"
)


@contextmanager
def asking(what: str, *, server: str = "the API server") -> Iterator[None]:
    """Around talk with a cluster: raises errors of ours where it fails; `what` is what was asked for."""
    try:
        yield
    except httpx2.TimeoutException as error:
        message = f"{what}: {server} did not answer in time"
        raise ClusterUnreachableError(message, hint=UNREACHABLE_HINT) from error
    except httpx2.TransportError as error:
        message = f"{what}: {server} cannot be reached: {str(error) or type(error).__name__}"
        raise ClusterUnreachableError(message, hint=UNREACHABLE_HINT) from error
    except (LightkubeConfigError, FileNotFoundError, ssl.SSLError) as error:
        hint = "does `kubectl get pods` work with the same KUBECONFIG and context?"
        raise ConfigError(f"{what}: cannot sign in at {server}: {error}", hint=hint) from error


def check(what: str, answer: httpx2.Response) -> None:
    """Raises what the cluster says, where it says no."""
    if answer.is_success:
        return
    answer.read()
    try:
        status = answer.json()
        is_status = status["kind"] == "Status"
    except (ValueError, KeyError, TypeError):
        is_status = False
    if not is_status:
        # Whatever answered was no API server, or a proxy before it.
        code = answer.status_code
        message = f"{what}: {answer.url.host} answered with HTTP status {code}, and not like an API server"
        raise KubernetesError(message, hint=UNREACHABLE_HINT, status=code)
    raise _refusal(
        what, answer.status_code, str(status.get("reason") or ""), str(status.get("message") or "").strip()
    )


def _refusal(what: str, status: int, reason: str, words: str) -> KubernetesError:
    dead, denied = _DEAD_WEBHOOK.search(words), _WEBHOOK.search(words)
    kind, hint = _KINDS.get(status, (KubernetesError, None))
    message = f"{what}: {words or reason or f'HTTP status {status}'}"
    if dead:
        kind, message = KubernetesError, f"{what}: a webhook does not answer: {words}"
        hint = f"is what serves it running? `kubectl get pods -A | grep {_owner(dead['webhook'])}`"
    elif denied:
        told = denied["reason"].strip()
        kind, message, hint = RefusedError, f"{what}: `{denied['webhook']}` refuses it: {told}", None
    elif status == 403:
        kind, message, hint = _forbidden(what, words)
    return kind(message, hint=hint, status=status, reason=reason)


def _forbidden(what: str, words: str) -> tuple[type[KubernetesError], str, str]:
    message = f"{what}: {words}"
    for sign, hint in _RULES.items():
        if sign in words:
            return RefusedError, message, hint
    found = _FORBIDDEN.search(words)
    if found is None:
        return ForbiddenError, message, rights_hint(None)
    where = f" in namespace `{found['namespace']}`" if found["namespace"] else " in the whole cluster"
    resource = f"{found['resource']}.{found['group']}" if found["group"] else found["resource"]
    message = f"{what}: user `{found['user']}` lacks the right `{found['verb']} {resource}`{where}"
    return ForbiddenError, message, rights_hint(found["namespace"])


def rights_hint(namespace: str | None) -> str:
    """What somebody does who may not do something there."""
    place = f" -n {namespace}" if namespace else ""
    return (
        f"`clickmill cluster check{place}` lists every right that is missing; an administrator grants them "
        f"with `kubectl apply{place} -f deploy/k8s/submitter.yaml`"
    )


def _owner(webhook: str) -> str:
    return "volcano" if webhook.endswith("volcano.sh") else webhook.rpartition(".")[0] or webhook
