"""Several checkpoints that score together."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.unit.train.conftest import small_config

from clickmill.errors import ConfigError, DataError
from clickmill.train.api import evaluate, infer, train
from clickmill.train.scorer import Scorer

if TYPE_CHECKING:
    from clickmill.train.assembly import Parts
    from clickmill.train.checkpoint import Checkpoint

pytestmark = pytest.mark.usefixtures("workplace")


def scores(*checkpoints: Path) -> np.ndarray:
    infer(small_config(), Path("scores.txt"), checkpoints=checkpoints)
    return np.loadtxt("scores.txt", dtype=np.float64)


def test_the_score_is_the_mean_over_passes_and_seeds():
    checkpoints = []
    for seed in (1, 2):
        train(small_config(f"runner.0.seed={seed}", f"runner.0.output_path=seed{seed}"))
        checkpoints += [Path(f"seed{seed}/checkpoints/{number}") for number in (0, 1)]
    single = [scores(checkpoint) for checkpoint in checkpoints]
    assert not np.allclose(single[0], single[2])
    assert np.allclose(scores(*checkpoints), np.mean(single, axis=0), atol=1e-6)


def test_checkpoints_are_not_in_memory_together(monkeypatch):
    """So many tables as one checkpoint has, however many score."""
    (summary,) = train(small_config("runner.0.epochs=1"))
    alive: list[weakref.ref[Parts]] = []

    def load(scorer: Scorer, checkpoint: Checkpoint) -> Parts:
        assert not [each for each in alive if each() is not None]
        parts = loads(scorer, checkpoint)
        alive.append(weakref.ref(parts))
        return parts

    loads = Scorer._load
    monkeypatch.setattr(Scorer, "_load", load)
    evaluate(small_config(), checkpoints=[Path(summary["checkpoint"])] * 3)
    assert len(alive) == 3


def test_data_that_changes_between_checkpoints_is_an_error(monkeypatch):
    (summary,) = train(small_config("runner.0.epochs=1"))
    lines = Path("test.tsv").read_text().splitlines(keepends=True)
    Path("other.tsv").write_text("".join(lines))
    loads = Scorer._load
    lengths = iter([len(lines), 400])

    def load(scorer: Scorer, checkpoint: Checkpoint) -> Parts:
        Path("other.tsv").write_text("".join(lines[: next(lengths)]))
        return loads(scorer, checkpoint)

    monkeypatch.setattr(Scorer, "_load", load)
    config = small_config("dataset.0.validation.data_path=other.tsv")
    with pytest.raises(DataError, match="not those that the checkpoint before has scored"):
        infer(config, Path("scores.txt"), checkpoints=[Path(summary["checkpoint"])] * 2)
    assert not Path("scores.txt").exists()


def test_one_checkpoint_twice_is_that_checkpoint():
    (summary,) = train(small_config("runner.0.epochs=1"))
    checkpoint = Path(summary["checkpoint"])
    once = evaluate(small_config(), checkpoints=[checkpoint])
    twice = evaluate(small_config(), checkpoints=[checkpoint, checkpoint])
    assert twice.pop("checkpoint") == f"{once.pop('checkpoint')}, {checkpoint}"
    assert twice == once


def test_checkpoints_of_different_slots_are_refused():
    train(small_config("runner.0.epochs=1", "runner.0.output_path=narrow"))
    train(
        small_config(
            "runner.0.epochs=1", "runner.0.output_path=wide", "hyper_parameters.sparse_feature_dim=5"
        )
    )
    with pytest.raises(ConfigError, match=r"wide.*different slots"):
        scores(Path("narrow/checkpoints/0"), Path("wide/checkpoints/0"))
