"""Rows stay or go by the shows and clicks that training has seen."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.unit.train.reference import Reference, config_of, write_log

from clickmill import _core
from clickmill.train.api import train
from clickmill.train.checkpoint import open_checkpoint


@pytest.mark.parametrize("num_workers", [1, 2])
def test_rows_with_a_low_score_go_at_the_end_of_a_pass(tmp_path, monkeypatch, num_workers):
    monkeypatch.chdir(tmp_path)
    write_log(tmp_path / "train.txt", 1000)
    rule = "{show_coefficient: 0.25, click_coefficient: 1.0, decay: 0.5, threshold: 2.0}"
    config = config_of(
        f"hyper_parameters.tables={{embedding: {{eviction: {{show_click: {rule}}}}}}}",
        f"phase.0.thread_num={num_workers}",
    )
    reference = Reference(config)
    shows: Counter[int] = Counter()
    clicks: Counter[int] = Counter()
    for batch in reference.batches:
        signs, inverse, offsets = batch.signs(0), batch.inverse(0), batch.offsets(0)
        num_slots = len(reference.slots)
        for sample in range(batch.num_rows):
            start, end = offsets[sample * num_slots], offsets[(sample + 1) * num_slots]
            for number in inverse[start:end]:
                shows[int(signs[number])] += 1
                clicks[int(signs[number])] += int(batch.labels[sample, 0])
    expected = {
        sign for sign in shows if 0.25 * 0.5 * (shows[sign] - clicks[sign]) + 1.0 * 0.5 * clicks[sign] >= 2.0
    }
    assert 0 < len(expected) < len(shows), "the rule divides the rows of this log"

    train(config)

    files = open_checkpoint(Path("run/checkpoints/0")).table_files("embedding")
    assert _core.Table.load(files).rows() == len(expected)
