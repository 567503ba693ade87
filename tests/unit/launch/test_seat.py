from __future__ import annotations

import pytest

from clickmill.errors import ConfigError
from clickmill.launch.seat import read_seat
from clickmill.train.collective.seat import Seat

TORCH = {"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "10.0.0.7", "MASTER_PORT": "29500"}


def test_nothing_in_the_environment_is_no_seat():
    assert read_seat({}) is None


def test_a_seat_is_read_in_the_words_of_torch():
    assert read_seat(TORCH) == Seat(1, 4, "10.0.0.7:29500", local_rank=1)
    assert read_seat({**TORCH, "LOCAL_RANK": "0"}) == Seat(1, 4, "10.0.0.7:29500", local_rank=0)


@pytest.mark.parametrize("role", [{}, {"TRAINING_ROLE": "TRAINER"}])
def test_a_seat_is_read_in_the_words_of_paddle_and_rank_0_is_the_first_endpoint(role):
    words = {
        "PADDLE_TRAINER_ID": "2",
        "PADDLE_TRAINERS_NUM": "3",
        "PADDLE_TRAINER_ENDPOINTS": "h0:6170,h1:6170,h1:6171",
    }
    assert read_seat({**words, **role}) == Seat(2, 3, "h0:6170", local_rank=1)


def test_what_our_launchers_set_comes_before_what_they_were_told():
    words = {"PADDLE_TRAINER_ID": "0", "PADDLE_TRAINER_ENDPOINTS": "h0:6170,h1:6170"}
    assert read_seat({**words, **TORCH}) == read_seat(TORCH)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"RANK": "0", "WORLD_SIZE": "2"}, "`MASTER_ADDR`: is not set, but `RANK` is"),
        ({**TORCH, "RANK": "x"}, "`RANK`: must be a whole number, not `x`"),
        ({**TORCH, "RANK": "4"}, "says 4, but `WORLD_SIZE` says 4"),
        ({"PADDLE_TRAINER_ENDPOINTS": "h0:6170", "PADDLE_TRAINER_ID": "1"}, "there are 1 workers"),
    ],
)
def test_words_that_name_no_seat_are_refused(words, message):
    with pytest.raises(ConfigError, match=message):
        read_seat(words)
