"""A process of a job never submits."""

from __future__ import annotations

import pytest

from clickmill.config import parse_config
from clickmill.errors import ConfigError
from clickmill.submit.worker import is_worker, worker_overrides
from tests.unit.config import examples

RANKS = {
    "PADDLE_PADDLEREC_ROLE": "WORKER",
    "PADDLEREC_CLUSTER_TYPE": "MPI",
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "6",
    "CLICKMILL_JOB": "a",
}


@pytest.mark.parametrize(
    ("role", "answer"), [("WORKER", True), (" worker", True), ("MASTER", False), ("", False), (None, False)]
)
def test_environment_tells_workers(role: str | None, answer: bool) -> None:
    assert is_worker({} if role is None else {"PADDLE_PADDLEREC_ROLE": role}) is answer


def test_role_that_means_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="PADDLE_PADDLEREC_ROLE`: must be MASTER"):
        is_worker({"PADDLE_PADDLEREC_ROLE": "SLAVE"})


def test_half_of_the_ranks_of_a_paddlecloud_job_are_servers() -> None:
    assert worker_overrides(parse_config(examples.MPI), RANKS) == ["runner.0.server_num=3"]


@pytest.mark.parametrize(
    ("text", "environ"),
    [
        (examples.MPI, {}),
        (examples.MPI, {**RANKS, "PADDLE_PADDLEREC_ROLE": ""}),
        (examples.MPI, {**RANKS, "PADDLEREC_CLUSTER_TYPE": "K8S"}),
        (examples.MPI.replace("fleet_mode: ps", "server_num: 1"), RANKS),
        (examples.COLLECTIVE, RANKS),
    ],
)
def test_else_nothing_is_changed(text: str, environ: dict[str, str]) -> None:
    assert worker_overrides(parse_config(text), environ) == []
