from __future__ import annotations

import pytest

from clickmill.errors import ConfigError
from clickmill.train.collective.seat import Seat, seat_of


def test_nothing_in_the_environment_is_no_seat():
    assert seat_of({}) is None


def test_a_seat_is_read_in_the_words_of_torch():
    found = seat_of({"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "10.0.0.7", "MASTER_PORT": "29500"})
    assert found == Seat(1, 4, "10.0.0.7:29500")


def test_a_seat_is_read_in_the_words_of_paddle_and_rank_0_is_the_first_endpoint():
    words = {
        "PADDLE_TRAINER_ID": "2",
        "PADDLE_TRAINERS_NUM": "3",
        "PADDLE_TRAINER_ENDPOINTS": "h0:6170,h1:6170,h2:6170",
    }
    assert seat_of(words) == Seat(2, 3, "h0:6170")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"RANK": "0", "WORLD_SIZE": "2"}, "not `MASTER_ADDR` and `MASTER_PORT`"),
        ({"RANK": "x", "WORLD_SIZE": "2", "MASTER_ADDR": "h", "MASTER_PORT": "1"}, "`x` in the environment"),
        ({"RANK": "2", "WORLD_SIZE": "2", "MASTER_ADDR": "h", "MASTER_PORT": "1"}, "rank 2 of 2"),
    ],
)
def test_words_that_name_no_seat_are_refused(words, message):
    with pytest.raises(ConfigError, match=message):
        seat_of(words)
