"""What makes the pods waits for volumes that somebody was asked to make, and for no others."""

from __future__ import annotations

from typing import Any

import pytest

from clickmill.errors import ForbiddenError
from clickmill.submit.kubernetes import binding
from clickmill.submit.kubernetes.binding import await_volumes

from .plans import plan_of

PROVISIONER = "volume.kubernetes.io/storage-provisioner"
PENDING: dict[str, Any] = {"metadata": {"annotations": {PROVISIONER: "example.com/nfs"}}, "status": {}}
BOUND = {**PENDING, "status": {"phase": "Bound"}}
UNASKED: dict[str, Any] = {"metadata": {}, "status": {"phase": "Pending"}}


class Claims:
    """A cluster that answers with one state after the other, and with the last one from then on."""

    def __init__(self, *states: Any) -> None:
        self.states = list(states)
        self.asked: list[str] = []

    def get(self, kind: object, name: str, *, namespace: str) -> Any:
        self.asked.append(name)
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        if isinstance(state, Exception):
            raise state
        return state


def wait(claims: Claims, **limits: float) -> list[str]:
    told: list[str] = []
    plan = plan_of("  volumes: [{name: data, claim: logs, mount: train_data}]\n")
    await_volumes(claims, plan, told.append, **limits)  # type: ignore[arg-type]
    return told


@pytest.fixture(autouse=True)
def _told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding, "_TELL_S", -1.0)
    monkeypatch.setattr(binding, "_POLL_S", 0.0)


def test_claims_are_waited_for_until_they_have_volumes() -> None:
    claims = Claims(UNASKED, PENDING, PENDING, BOUND)
    (words,) = wait(claims, patience_s=1e9, asked_within_s=1e9)
    assert "claim `criteo-job-output` has no volume yet" in words
    assert claims.asked == [*["criteo-job-output"] * 4, "logs"]


@pytest.mark.parametrize("state", [UNASKED, None, ForbiddenError("no", status=403)])
def test_nobody_waits_for_what_may_never_come(state: Any) -> None:
    assert wait(Claims(state), patience_s=1e9, asked_within_s=-1.0) == []


def test_patience_has_an_end() -> None:
    wait(Claims(PENDING), patience_s=0.05)
