"""Names, labels, numbers and paths as Kubernetes takes them; its API server or its nodes refuse others."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field

from clickmill._section import Integer
from clickmill.config.backend.section import Quantity

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_INT32 = 2**31 - 1
"""The API server's numbers of pods and of retries."""
MAX_RESTARTS = MAX_INT32 - 100
"""A few more retries are allowed for than a job has restarts."""
MAX_PODS = 100_000
"""Of one role: what Kubernetes takes as the number of pods of a Job."""
MAX_CORES = 100_000
"""Or cards, of one pod: far more than any node has."""
WORKING_FOLDER = "/job"
"""Of pods; relative paths of mounts and of data lie below it."""
PACKAGE = "/package"
OUTPUT = "/output"
SCRATCH = {"job": WORKING_FOLDER, "tmp": "/tmp", "cache": "/cache"}
"""Folders of the pod itself, by the name of their volume."""
_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_TAKEN = frozenset({"/", PACKAGE, OUTPUT, _ACCOUNT, *SCRATCH.values()})

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_WORD = r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_HOST_PART = r"[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?"
_HOST = rf"({_HOST_PART}(\.{_HOST_PART})*|\[[0-9a-fA-F:]+\])(:[0-9]+)?"
_FOLDER = r"[a-z0-9]+((\.|__?|-+)[a-z0-9]+)*"
_TAG, _DIGEST = r"\w[-\w.]{0,127}", r"[A-Za-z][-\w+.]*:[0-9a-fA-F]{32,}"
_IMAGE = re.compile(rf"({_HOST}/)?{_FOLDER}(/{_FOLDER})*(:{_TAG})?(@{_DIGEST})?", re.ASCII)
_VARIABLE = re.compile(r"(?!\.\.|\.$)[-._a-zA-Z][-._a-zA-Z0-9]*")


def _of(pattern: str, max_length: int, words: str) -> Callable[[str], str]:
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if len(value) > max_length or not compiled.fullmatch(value):
            raise ValueError(f"must be {words}, at most {max_length} of them, not `{value}`")
        return value

    return check


def _or_empty(check: Callable[[str], str]) -> AfterValidator:
    """Of a key that may be left empty, which says nothing."""
    return AfterValidator(lambda value: check(value) if value else value)


_DASHED = "lower-case letters and digits, with `-` between them"
_label = _of(_LABEL, 63, _DASHED)
_volume_name = _of(_LABEL, 50, _DASHED)
_object_name = _of(_SUBDOMAIN, 253, "lower-case letters and digits, with `-` and `.` between them")
_label_value = _of(_WORD, 63, "letters and digits, with `-`, `_` and `.` between them")


def _label_key(value: str) -> str:
    prefix, slash, name = value.rpartition("/")
    is_prefixed = re.fullmatch(_SUBDOMAIN, prefix) and len(prefix) <= 253
    if (slash and not is_prefixed) or not re.fullmatch(_WORD, name) or len(name) > 63:
        raise ValueError(
            "must be the key of a label, such as `disk` or `example.com/disk`: at most 63 letters and "
            f"digits, with `-`, `_` and `.` between them, not `{value}`"
        )
    return value


def _image(value: str) -> str:
    if not _IMAGE.fullmatch(value):
        raise ValueError(f"must be an image, such as `registry.example/team/clickmill:0.1.0`, not `{value}`")
    return value


def _variable(value: str) -> str:
    if not _VARIABLE.fullmatch(value):
        raise ValueError(
            "is no name of a variable; such a name has letters, digits, `_`, `-` and `.`, and no digit at "
            "its start"
        )
    return value


def _without_null(value: str) -> str:
    if "\0" in value:
        raise ValueError("must be a text without null characters")
    return value


def _filled(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be empty")
    return value


def _forward(value: str) -> str:
    if ".." in value.split("/"):
        raise ValueError(f"must be a path without `..`, not `{value}`")
    return _without_null(value)


def _absolute(value: str) -> str:
    if not value.startswith("/"):
        raise ValueError(f"must be an absolute path, not `{value}`")
    return _forward(value)


def mount_place(mount: str) -> str:
    """Where a pod sees what is mounted: a relative path lies below the working folder."""
    place = posixpath.normpath(posixpath.join(WORKING_FOLDER, mount))
    return "/" + place.lstrip("/")


def _mount(value: str) -> str:
    place = mount_place(_forward(value))
    if place in _TAKEN or place.startswith(f"{PACKAGE}/"):
        raise ValueError(f"is `{place}`, which every pod has already; name another, such as `train_data`")
    if ":" in value:
        raise ValueError(f"must be a path without `:`, not `{value}`")
    return value


def _more_than_nothing(value: str) -> str:
    if not value.strip("0.mkKMGTPEi"):
        raise ValueError(f"must be more than nothing, not `{value}`")
    return value


Label = Annotated[str, _or_empty(_label)]
"""A part of a DNS name, like a namespace."""
ObjectName = Annotated[str, _or_empty(_object_name)]
"""Of an object of Kubernetes."""
VolumeName = Annotated[str, AfterValidator(_volume_name)]
LabelKey = Annotated[str, AfterValidator(_label_key)]
LabelValue = Annotated[str, _or_empty(_label_value)]
TaintKey = Annotated[str, _or_empty(_label_key)]
Image = Annotated[str, _or_empty(_image)]
Variable = Annotated[str, AfterValidator(_variable)]
VariableText = Annotated[str, AfterValidator(_without_null)]
HostName = Annotated[str, AfterValidator(_filled)]
HostPath = Annotated[str, _or_empty(_absolute)]
ExportedPath = Annotated[str, AfterValidator(_absolute)]
Mount = Annotated[str, AfterValidator(_mount)]
Size = Annotated[Quantity, AfterValidator(_more_than_nothing)]
"""A quantity that must be said."""
Pods = Annotated[Integer, Field(ge=1, le=MAX_PODS)]
"""How many of one role."""
Cores = Annotated[Integer, Field(ge=1, le=MAX_CORES)]
Cards = Annotated[Integer, Field(ge=0, le=MAX_CORES)]
Restarts = Annotated[Integer, Field(ge=0, le=MAX_RESTARTS)]
