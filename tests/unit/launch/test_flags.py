from __future__ import annotations

import pytest

from clickmill.errors import ConfigError
from clickmill.launch.flags import flag_overrides


def test_flags_of_2016_become_what_they_are_called_today() -> None:
    flags = [
        "--num_passes=2",
        "--trainer_count=4",
        "--log_period=50",
        "--saving_period=1",
        "--save_dir=./output",
    ]
    assert flag_overrides(flags, runner=1, phase=0) == [
        "runner.1.epochs=2",
        "phase.0.thread_num=4",
        "runner.1.print_interval=50",
        "runner.1.save_checkpoint_interval=1",
        "runner.1.output_path=./output",
    ]


def test_flags_of_the_machinery_of_that_time_are_passed_over() -> None:
    assert (
        flag_overrides(["--dot_period=10", "--use_gpu=0", "--ports_num_for_sparse=2", "--local=0"], 0, 0)
        == []
    )


@pytest.mark.parametrize("flag", ["--bogus=1", "num_passes=2", "--num_passes"])
def test_a_flag_without_meaning_is_refused_by_its_name(flag: str) -> None:
    with pytest.raises(ConfigError, match=flag.removeprefix("--").partition("=")[0]):
        flag_overrides([flag], 0, 0)
