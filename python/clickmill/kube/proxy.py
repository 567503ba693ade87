"""HTTP to a port of a pod, through the API server: works from wherever `kubectl` does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2

from clickmill.errors import KubernetesError
from clickmill.kube.errors import asking, check

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clickmill.kube.client import Cluster

TOKEN_HEADER = "X-Clickmill-Token"
"""The API server keeps `Authorization` for itself."""
DEADLINE_S = 15.0
_CONNECT_DEADLINE_S = 5.0
_MAX_STATUS_BYTES = 64 << 10
_UNAUTHORIZED = 401


@dataclass(frozen=True, slots=True)
class PodAnswer:
    """What a pod has said."""

    code: int
    """Its HTTP status."""
    headers: Mapping[str, str]
    content: bytes

    @property
    def words(self) -> str:
        """The content as one line of text."""
        return " ".join(self.content.decode(errors="replace").split())


@dataclass(frozen=True, slots=True)
class PodProxy:
    """One port of one pod. Several threads may use it."""

    cluster: Cluster
    pod: str
    port: int
    token: str | None = None
    """That the pod asks for."""
    deadline_s: float = DEADLINE_S

    def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> PodAnswer:
        """What the pod answers, whatever its code. KubernetesError where it could not be asked."""
        what = f"ask pod `{self.pod}` for {path}"
        place = f"/api/v1/namespaces/{self.cluster.namespace}/pods/{self.pod}:{self.port}/proxy{path}"
        own = {} if self.token is None else {TOKEN_HEADER: self.token}
        with asking(what, server=self.cluster.server):
            response = self.cluster.http.request(
                method,
                place,
                params=dict(params or {}),
                headers={**own, **(headers or {})},
                timeout=httpx2.Timeout(self.deadline_s, connect=_CONNECT_DEADLINE_S),
            )
            if _is_status(response):
                check(what, response)
        if response.status_code == _UNAUTHORIZED:
            raise KubernetesError(
                f"pod `{self.pod}` does not take the token of the job",
                hint="was the Secret with the token changed while the pod runs?",
                status=_UNAUTHORIZED,
            )
        return PodAnswer(response.status_code, response.headers, response.content)


def _is_status(response: httpx2.Response) -> bool:
    """Whether the API server itself has answered: what the pod says may have the same code."""
    if not response.is_error or len(response.content) > _MAX_STATUS_BYTES:
        return False
    try:
        content = response.json()
    except ValueError:
        return False
    return isinstance(content, dict) and content.get("kind") == "Status" and "apiVersion" in content
