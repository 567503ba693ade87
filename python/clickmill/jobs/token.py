"""The token of a job, as its pods have it."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

from clickmill.errors import ConfigError
from clickmill.kube import kinds
from clickmill.launch.pod.shared_token import KEY
from clickmill.submit.kubernetes.names import Names

if TYPE_CHECKING:
    from clickmill.kube.client import Cluster


def job_token(cluster: Cluster, job: str) -> str | None:
    """The token; None where no pod has made one yet. ForbiddenError where this user may not read it."""
    name = Names(job).token
    secret = cluster.get(kinds.SECRET, name)
    text = ((secret or {}).get("data") or {}).get(KEY)
    if not text:
        return None
    try:
        return base64.b64decode(text, validate=True).decode().strip() or None
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ConfigError(f"Secret `{name}` has a `{KEY}` that is no text: {error}") from error
