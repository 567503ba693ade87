"""What a trainer says that the coordinator does not take."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from clickmill.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

_VALUES = re.compile(r"(`[^`]+`): (`[^`]*`, not `[^`]*`)")
"""A key and its two values; one that is too long ends in `…`."""


def refusal(reason: str, environ: Mapping[str, str] | None = None) -> ConfigError:
    """The error, with what can be done where this process runs."""
    environ = os.environ if environ is None else environ
    words = _VALUES.sub(lambda found: f"{found[1]} differs" if "…`" in found[2] else found[0], reason)
    return ConfigError(f"the coordinator refuses this trainer: {words}", hint=_hint(environ))


def _hint(environ: Mapping[str, str]) -> str:
    job, namespace = environ.get("CLICKMILL_JOB"), environ.get("NAMESPACE")
    if job and namespace and "POD_NAME" in environ:
        return (
            f"undo the change; or begin anew, with `clickmill job delete {job} --with-output -n {namespace}` "
            "before it is submitted, or with another `submit.job_name`"
        )
    return (
        "undo the change, or start a new run in another folder, from a checkpoint of this one: "
        "`init_model_path`"
    )
