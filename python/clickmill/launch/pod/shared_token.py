"""The token of a job: in the environment, or in a Secret that the first pod to find it empty fills.

The manifest has the Secret without data, so that it can be committed and applied by anybody. Of pods that
come to it at the same time one is first: an update says which version it is made from, and the API server
refuses the second.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

from clickmill.errors import ConfigError
from clickmill.launch.pod.access import asked, secret_denied
from clickmill.launch.pod.api_server import Refused
from clickmill.launch.token import new_token

if TYPE_CHECKING:
    from collections.abc import Callable

    from clickmill.launch.pod.api_server import ApiServer, Json
    from clickmill.launch.pod.deadline import Deadline
    from clickmill.launch.pod.pod import Pod

KEY = "token"
_CONFLICT, _NOT_FOUND = 409, 404


def secret_name(job: str) -> str:
    """Of the Secret that holds the token of a job."""
    return f"{job}-token"


def shared_token(api: ApiServer, pod: Pod, deadline: Deadline, tell: Callable[[str], None]) -> str:
    """The token that all pods of the job have. Raises ConfigError where the account may not read it."""
    name = secret_name(pod.job)
    path = f"/api/v1/namespaces/{pod.namespace}/secrets/{name}"
    denied = secret_denied(api, pod.namespace, pod.job, name)

    def read_or_fill() -> str | None:
        secret = api.get(path)
        found = _token_of(secret, name)
        if found is not None:
            return found
        token = new_token()
        data = dict(secret.get("data") or {}) | {KEY: base64.b64encode(token.encode()).decode()}
        try:
            api.put(path, {**secret, "data": data})
        except Refused as error:
            if error.status != _CONFLICT:
                raise
            return None  # another pod was first; its token is there now
        return token

    while True:
        try:
            token = asked(read_or_fill, deadline=deadline, tell=tell, denied=denied)
        except Refused as error:
            raise _refused(error, pod, name) from error
        if token is not None:
            return token


def _token_of(secret: Json, name: str) -> str | None:
    text = (secret.get("data") or {}).get(KEY)
    if not text:
        return None
    try:
        return base64.b64decode(text, validate=True).decode().strip() or None
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ConfigError(f"Secret `{name}` has a `{KEY}` that is no text: {error}") from error


def _refused(error: Refused, pod: Pod, name: str) -> ConfigError:
    hint = None
    if error.status == _NOT_FOUND:
        hint = f"kubectl -n {pod.namespace} create secret generic {name}; the first pod puts a token into it"
    return ConfigError(f"Secret `{name}` cannot be used: {error}", hint=hint)
