from __future__ import annotations

import socket

import pytest

from clickmill.errors import (
    ClickmillError,
    ClusterUnreachableError,
    ConflictError,
    ForbiddenError,
    KubernetesError,
    NotFoundError,
    RefusedError,
)
from clickmill.kube import kinds

from .api_server import Answer, ApiServer, Request, serving, status


def test_objects_are_looked_for_in_the_namespace_of_the_context() -> None:
    with serving(lambda _: (200, {"metadata": {"name": "a"}})) as server:
        assert server.cluster().get(kinds.POD, "a") == {"metadata": {"name": "a"}}
        server.cluster("other").get(kinds.VOLCANO_JOB, "b")
        server.cluster().get(kinds.QUEUE, "default")
    assert [request.path for request in server.requests] == [
        "/api/v1/namespaces/team/pods/a",
        "/apis/batch.volcano.sh/v1alpha1/namespaces/other/jobs/b",
        "/apis/scheduling.volcano.sh/v1beta1/queues/default",
    ]


def test_what_is_not_there_is_none() -> None:
    with serving(lambda _: status(404, "NotFound", 'pods "a" not found')) as server:
        assert server.cluster().get(kinds.POD, "a") is None
        assert server.cluster().delete(kinds.POD, "a") is False


def test_a_list_is_read_page_by_page_and_its_items_say_what_they_are() -> None:
    def answer(request: Request) -> Answer:
        is_first = "continue" not in request.parameters
        metadata = {"continue": "next"} if is_first else {}
        return 200, {"metadata": metadata, "items": [{"metadata": {"name": "a" if is_first else "b"}}]}

    with serving(answer) as server:
        found = server.cluster().list(kinds.POD, labels={"x": "1", "y": "2"}, namespace="*")
    assert [(item["kind"], item["metadata"]["name"]) for item in found] == [("Pod", "a"), ("Pod", "b")]
    assert server.requests[0].path == "/api/v1/pods"
    assert server.requests[0].parameters["labelSelector"] == "x=1,y=2"


def test_apply_sends_the_object_as_it_stands() -> None:
    item = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"}, "data": {}}
    with serving(lambda request: (200, request.body)) as server:
        assert server.cluster().apply(item, is_trial=True) == item
    (request,) = server.requests
    assert (request.method, request.path, request.body) == ("PATCH", "/api/v1/namespaces/n/secrets/s", item)
    assert request.headers["Content-Type"] == "application/apply-patch+yaml"
    assert request.parameters == {"fieldManager": "clickmill", "force": "true", "dryRun": "All"}


def _error(answer: Answer) -> ClickmillError:
    with serving(lambda _: answer) as server, pytest.raises(ClickmillError) as caught:
        server.cluster().list(kinds.POD)
    return caught.value


def test_a_missing_right_is_named_with_the_way_to_it() -> None:
    words = (
        'pods is forbidden: User "ann" cannot list resource "jobs" in API group "batch.volcano.sh" '
        'in the namespace "team"'
    )
    error = _error(status(403, "Forbidden", words))
    assert isinstance(error, ForbiddenError)
    assert "user `ann` lacks the right `list jobs.batch.volcano.sh` in namespace `team`" in str(error)
    assert "kubectl apply -n team -f deploy/k8s/submitter.yaml" in (error.hint or "")


def test_a_quota_is_no_missing_right() -> None:
    words = 'pods "a" is forbidden: exceeded quota: small, requested: cpu=4, used: cpu=2, limited: cpu=4'
    error = _error(status(403, "Forbidden", words))
    assert isinstance(error, RefusedError)
    assert "kubectl describe resourcequota" in (error.hint or "")


def test_a_webhook_is_quoted() -> None:
    words = 'admission webhook "validatejob.volcano.sh" denied the request: unable to find job queue'
    error = _error(status(400, "BadRequest", words))
    assert isinstance(error, RefusedError)
    assert str(error) == "list pods: `validatejob.volcano.sh` refuses it: unable to find job queue"


def test_a_webhook_that_does_not_answer_is_told_from_one_that_refuses() -> None:
    words = 'Internal error occurred: failed calling webhook "mutatejob.volcano.sh": connection refused'
    error = _error(status(500, "InternalError", words))
    assert type(error) is KubernetesError
    assert "grep volcano" in (error.hint or "")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (401, ForbiddenError),
        (404, NotFoundError),
        (409, ConflictError),
        (422, RefusedError),
        (503, KubernetesError),
    ],
)
def test_every_status_has_its_error(code: int, kind: type[KubernetesError]) -> None:
    error = _error(status(code, "Word", "some words"))
    assert type(error) is kind
    assert (error.status, error.reason) == (code, "Word")
    assert "some words" in str(error)


def test_an_answer_that_is_no_status_is_not_from_an_api_server() -> None:
    error = _error((502, "<html>bad gateway</html>"))
    assert isinstance(error, KubernetesError)
    assert "answered with HTTP status 502, and not like an API server" in str(error)


def test_nobody_there() -> None:
    with socket.socket() as taken:  # bound, and not listening: connections are refused
        taken.bind(("127.0.0.1", 0))
        server = ApiServer(lambda _: (200, {}), address=f"http://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(ClusterUnreachableError, match="cannot be reached") as caught:
            server.cluster().list(kinds.POD)
    assert caught.value.status is None
