"""Where pods write what the runner names: on volumes, for their root is read-only.

What lies in their working folder they write below `kubernetes.output`; see `launch.pod.outputs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill.config.backend.pod_values import OUTPUT, PACKAGE, SCRATCH, WORKING_FOLDER
from clickmill.store.remote.url import is_url
from clickmill.submit.kubernetes.data import in_pod
from clickmill.submit.outputs import outputs_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import PurePosixPath

    from clickmill.errors import Problem
    from clickmill.submit.request import Request

_REMEDY = (
    "name a relative path, which lies on the volume of `kubernetes.output`, or one on a volume of "
    "`kubernetes.volumes` with `read_only: false`"
)


def output_problems(request: Request) -> Iterator[Problem]:
    """Paths at which pods can write nothing: the job would fail when it has trained."""
    is_writable = _mounts(request)
    for each in outputs_of(request):
        if is_url(each.text):
            continue
        place = in_pod(request, each.text)
        holder = _holder(place, is_writable)
        if holder is None:
            message = f"pods cannot write to `{place}`, for their root is read-only; {_REMEDY}"
            yield request.config.problem(message, each.key)
        elif not is_writable[holder]:
            message = f"pods may only read what is mounted at `{holder}`, and `{place}` is there; {_REMEDY}"
            yield request.config.problem(message, each.key)


def output_notes(request: Request) -> Iterator[Problem]:
    """Paths whose files go with the pod that wrote them."""
    lost = {place for place in SCRATCH.values() if place != WORKING_FOLDER}
    is_writable = _mounts(request)
    for each in outputs_of(request):
        if is_url(each.text):
            continue
        place = in_pod(request, each.text)
        if _holder(place, is_writable) in lost:
            message = f"what pods write to `{place}` goes with them; {_REMEDY}"
            yield request.config.problem(message, each.key)


def _mounts(request: Request) -> dict[str, bool]:
    """Where something is mounted into pods, and whether they may write there."""
    return {
        PACKAGE: False,
        OUTPUT: True,
        **dict.fromkeys(SCRATCH.values(), True),
        **{volume.place: not volume.read_only for volume in request.backend.kubernetes.volumes},
    }


def _holder(place: PurePosixPath, mounts: dict[str, bool]) -> str | None:
    """The mount that a path lies on: the innermost; None for the root."""
    return max((mount for mount in mounts if place.is_relative_to(mount)), key=len, default=None)
