"""The way in: from a context and a namespace to a cluster."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from clickmill.errors import MissingExtra

if TYPE_CHECKING:
    from clickmill.kube.client import Cluster

_OF_THE_EXTRA = {"lightkube", "httpx2"}


def connect(context: str = "", namespace: str = "") -> Cluster:
    """The cluster of `context`, or of the current one. Nothing is sent yet.

    `namespace` is where objects are looked for unless a call says otherwise; where it is empty, that of the
    context, else `default`. Raises ConfigError where no cluster is known, MissingExtra without lightkube.
    """
    try:
        account = import_module("clickmill.kube.kubeconfig").find_account(context)
        return cast("Cluster", import_module("clickmill.kube.client").Cluster(account, namespace))
    except ImportError as error:
        if error.name not in _OF_THE_EXTRA:
            raise
        message = "speaking to Kubernetes needs lightkube, which is not installed"
        raise MissingExtra(message, hint="pip install 'clickmill[kubernetes]'") from error
