"""One API server, as one user, in one namespace: every call has a deadline and raises errors of ours."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any, Literal, cast

import httpx2
from lightkube.config.client_adapter import Client, ConnectionParams

from clickmill.errors import NotFoundError
from clickmill.kube.errors import asking, check
from clickmill.kube.kinds import kind_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clickmill.kube.kinds import Kind
    from clickmill.kube.kubeconfig import Account

FIELD_MANAGER = "clickmill"
"""Who owns the fields that we apply."""
CONNECT_DEADLINE_S = 5.0
CALL_DEADLINE_S = 30.0
ALL_NAMESPACES = "*"
_PAGE = 500

Object = dict[str, Any]
"""An object as it stands in YAML."""
Propagation = Literal["Foreground", "Background", "Orphan"]


class Cluster:
    """A cluster as this user sees it. Several threads may use it."""

    def __init__(self, account: Account, namespace: str = "") -> None:
        self.server: str = account.config.cluster.server
        """Address of the API server."""
        self.context: str = account.config.context_name
        self.origin = account.origin
        """Where the account was found, for people."""
        self.default_namespace: str = account.config.namespace
        """Of the context: where commands look that are told of none."""
        self.namespace: str = namespace or self.default_namespace
        self.http = _http(account)
        """For requests that have no method here; to be used within `clickmill.kube.errors.asking`."""

    def within(self, namespace: str) -> Cluster:
        """The same cluster in another namespace, over the same connections."""
        other = copy.copy(self)
        other.namespace = namespace
        return other

    def command(self, words: str, namespace: str | None = None) -> str:
        """What somebody types to do something there: `clickmill job status ctr -n team`."""
        place = namespace or self.namespace
        return f"clickmill {words}" if place == self.default_namespace else f"clickmill {words} -n {place}"

    def close(self) -> None:
        """End all connections; calls fail from here on."""
        self.http.close()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def get(self, kind: Kind, name: str, *, namespace: str | None = None) -> Object | None:
        """The object; None where there is none, or no such kind."""
        try:
            return self._ask(f"read {kind.name} `{name}`", "GET", self._path(kind, namespace, name))
        except NotFoundError:
            return None

    def list(
        self,
        kind: Kind,
        *,
        labels: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
        namespace: str | None = None,
    ) -> list[Object]:
        """All objects that have these labels and values of fields; `*` as the namespace means everywhere.

        Raises NotFoundError where the cluster has no such kind.
        """
        parameters = {"limit": str(_PAGE), **_selectors(labels, fields)}
        found: list[Object] = []
        while True:
            path = self._path(kind, namespace)
            page = self._ask(f"list {kind.resource}", "GET", path, parameters=parameters)
            # Items of a list do not say what they are.
            found += [
                {"apiVersion": kind.api_version, "kind": kind.name, **item} for item in page["items"] or []
            ]
            more = page.get("metadata", {}).get("continue")
            if not more:
                return found
            parameters["continue"] = more

    def create(self, item: Object, *, namespace: str | None = None, is_trial: bool = False) -> Object:
        """Make the object, or only ask whether it could be made.

        Raises ConflictError where there is one of that name.
        """
        kind, name = kind_of(item), item["metadata"].get("name", "")
        path = self._path(kind, namespace or item["metadata"].get("namespace"))
        parameters = {"fieldManager": FIELD_MANAGER} | ({"dryRun": "All"} if is_trial else {})
        return self._ask(f"create {kind.name} `{name}`", "POST", path, parameters=parameters, body=item)

    def replace(self, item: Object) -> Object:
        """Write the object as a whole. Raises ConflictError where it is not any more what was read."""
        kind, name = kind_of(item), item["metadata"]["name"]
        path = self._path(kind, item["metadata"].get("namespace"), name)
        return self._ask(
            f"replace {kind.name} `{name}`",
            "PUT",
            path,
            parameters={"fieldManager": FIELD_MANAGER},
            body=item,
        )

    def apply(self, item: Object, *, is_trial: bool = False) -> Object:
        """Server-side apply of `item` as it stands; what the object is then.

        Fields that others own are taken over: what is applied is what was asked for. `is_trial` asks the
        server what would be, webhooks included, and changes nothing.
        """
        kind, name = kind_of(item), item["metadata"]["name"]
        path = self._path(kind, item["metadata"].get("namespace"), name)
        parameters = {"fieldManager": FIELD_MANAGER, "force": "true"}
        if is_trial:
            parameters["dryRun"] = "All"
        # JSON is YAML, too.
        return self._ask(
            f"apply {kind.name} `{name}`",
            "PATCH",
            path,
            parameters=parameters,
            body=item,
            content_type="application/apply-patch+yaml",
        )

    def patch(self, kind: Kind, name: str, patch: Object, *, namespace: str | None = None) -> Object:
        """JSON merge patch: what is None goes, lists are replaced as a whole."""
        path = self._path(kind, namespace, name)
        return self._ask(
            f"change {kind.name} `{name}`",
            "PATCH",
            path,
            parameters={"fieldManager": FIELD_MANAGER},
            body=patch,
            content_type="application/merge-patch+json",
        )

    def delete(
        self,
        kind: Kind,
        name: str,
        *,
        propagation: Propagation = "Background",
        namespace: str | None = None,
        grace_period_s: int | None = None,
        uid: str | None = None,
    ) -> bool:
        """Whether there was something to delete; it is gone when `get` says so.

        `uid`: of the only object that is meant; ConflictError where it is another one of that name by now.
        """
        options: Object = {"propagationPolicy": propagation}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        if grace_period_s is not None:
            options["gracePeriodSeconds"] = grace_period_s
        path = self._path(kind, namespace, name)
        try:
            self._ask(f"delete {kind.name} `{name}`", "DELETE", path, body=options)
        except NotFoundError:
            return False
        return True

    def discover(self, path: str) -> Object:
        """What the server says about itself: `/version`, or which kinds it has, `/apis/GROUP/VERSION`."""
        return self._ask(f"read {path}", "GET", path)

    def _path(self, kind: Kind, namespace: str | None, name: str | None = None) -> str:
        place = namespace or self.namespace
        return kind.path(None if place == ALL_NAMESPACES else place, name)

    def _ask(
        self,
        what: str,
        method: str,
        path: str,
        *,
        parameters: Mapping[str, str] | None = None,
        body: Object | None = None,
        content_type: str = "application/json",
    ) -> Object:
        headers = {"Accept": "application/json"} | ({"Content-Type": content_type} if body else {})
        content = json.dumps(body).encode() if body is not None else None
        with asking(what, server=self.server):
            answer = self.http.request(method, path, params=parameters, content=content, headers=headers)
            check(what, answer)
            return cast("Object", answer.json())


def _http(account: Account) -> httpx2.Client:
    timeout = httpx2.Timeout(CALL_DEADLINE_S, connect=CONNECT_DEADLINE_S)
    with asking("sign in", server=account.config.cluster.server):
        return Client(account.config, ConnectionParams(timeout=timeout))


def _selectors(labels: Mapping[str, str] | None, fields: Mapping[str, str] | None) -> dict[str, str]:
    chosen = {"labelSelector": labels, "fieldSelector": fields}
    return {
        name: ",".join(f"{key}={value}" for key, value in values.items())
        for name, values in chosen.items()
        if values
    }
