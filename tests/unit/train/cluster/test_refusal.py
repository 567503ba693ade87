from __future__ import annotations

from clickmill.train.cluster.refusal import refusal

POD = {"CLICKMILL_JOB": "ctr", "NAMESPACE": "team", "POD_NAME": "ctr-trainer-0"}


def test_large_values_are_left_out_and_others_told() -> None:
    reason = 'the job differs: `tables.0.dim`: `9`, not `8`, `dense.initial`: `"AAAA…`, not `"AAAB…`'
    assert str(refusal(reason, {})).endswith(
        "the job differs: `tables.0.dim`: `9`, not `8`, `dense.initial` differs"
    )


def test_a_pod_is_told_what_can_be_done_on_kubernetes() -> None:
    assert "another folder" in (refusal("x", {}).hint or "")
    hint = refusal("x", POD).hint or ""
    assert "another folder" not in hint
    assert "`clickmill job delete ctr --with-output -n team`" in hint
    assert "submit.job_name" in hint
