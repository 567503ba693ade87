"""The real data sets as arrays: vocabulary ids, scaled numbers, and the agreed split.

Every peer sees the same slots. A value that occurs in the held-out part alone keeps an id of its own, as it
would in a table without fixed vocabulary: its row is the initial one.
"""

# N samples, S sparse slots, P positions (values of all slots), F dense features.
from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True)
class RealData:
    slots: tuple[str, ...]
    ids_NP: np.ndarray
    slot_of_P: tuple[int, ...]
    """Index of the slot that each position belongs to."""
    dense_NF: np.ndarray
    label_N: np.ndarray
    num_train: int
    split: str

    @property
    def num_ids(self) -> int:
        return int(self.ids_NP.max()) + 1


def vocabulary_ids(columns: Sequence[Sequence[str]], slot_of_P: Sequence[int]) -> np.ndarray:
    """Ids [N, P] in one range for all slots, so that equal text in two slots gives two ids."""
    ids, start = [np.empty(0)] * len(columns), 0
    for slot in sorted(set(slot_of_P)):
        positions = [position for position, of in enumerate(slot_of_P) if of == slot]
        values, inverse = np.unique(np.stack([columns[each] for each in positions]), return_inverse=True)
        for position, row in zip(positions, inverse.reshape(len(positions), -1), strict=True):
            ids[position] = row + start
        start += len(values)
    return np.stack(ids, axis=1).astype(np.int64)


def log_square(text: str) -> str:
    """The usual coarse step for counts: floor(ln(x)^2) above 2, else the number itself."""
    if text == "":
        return ""
    number = int(text)
    return str(math.floor(math.log(number) ** 2) if number > 2 else number)


def log_scale(text: str) -> float:
    if text == "":
        return 0.0
    number = int(text)
    return math.copysign(math.log1p(abs(number)), number)


def criteo(folder: Path) -> RealData:
    """C1–C26 as they are, I1–I13 both as coarse steps and as logarithms; first 80 % train."""
    with (folder / "criteo_85k" / "criteo_sample85k.tsv").open() as file:
        columns = list(zip(*(line.rstrip("\n").split("\t") for line in file), strict=True))
    label = np.array(columns[0], dtype=np.float32)
    steps = [[log_square(text) for text in column] for column in columns[1:14]]
    dense = [[log_scale(text) for text in column] for column in columns[1:14]]
    return RealData(
        slots=tuple(f"I{n}" for n in range(1, 14)) + tuple(f"C{n}" for n in range(1, 27)),
        ids_NP=vocabulary_ids([*steps, *columns[14:40]], range(39)),
        slot_of_P=tuple(range(39)),
        dense_NF=np.array(dense, dtype=np.float32).T.copy(),
        label_N=label,
        num_train=round(len(label) * 0.8),
        split="first 80 % train, last 20 % held out, in the order of the file",
    )


def avazu(folder: Path) -> RealData:
    """All columns but `id`, and the hour of the day; sorted by hour, last 20 % held out.

    The hour of the day is made as clickmill's schema makes it: its last digit, the bag of its two digits, and
    the bag of their crosses with the last one.
    """
    with (folder / "avazu_37k" / "avazu.csv").open(newline="") as file:
        header, *lines = csv.reader(file)
    columns = dict(zip(header, zip(*lines, strict=True), strict=True))
    slots = tuple(name for name in header if name not in {"id", "click", "hour"})
    label = np.array(columns["click"], dtype=np.float32)
    tens, units = ([hour[place] for hour in columns["hour"]] for place in (-2, -1))
    crosses = [[unit + digit for unit, digit in zip(units, each, strict=True)] for each in (tens, units)]
    values = [*(columns[slot] for slot in slots), units, tens, units, *crosses]
    first = len(slots)
    slot_of_P = (*range(first), first, first + 1, first + 1, first + 2, first + 2)
    return RealData(
        slots=(*slots, "hour_units", "hour_digits", "hour_of_day"),
        ids_NP=vocabulary_ids(values, slot_of_P),
        slot_of_P=slot_of_P,
        dense_NF=np.zeros((len(label), 0), dtype=np.float32),
        label_N=label,
        num_train=round(len(label) * 0.8),
        split="by time, last 20 % held out",
    )


def movielens(folder: Path) -> RealData:
    """Ratings with the fields of user and movie; 4 or 5 stars are a click; last 10 % by time held out."""

    def read(name: str) -> list[list[str]]:
        with (folder / "movielens_1m" / name).open(encoding="latin-1") as file:
            return [line.rstrip("\n").split("::") for line in file]

    users = {user: rest for user, *rest in read("users.dat")}
    genres = {movie: kinds for movie, _, kinds in read("movies.dat")}
    ratings = read("ratings.dat")
    # The sort is stable: ratings of one second stay in the order of the file.
    ratings.sort(key=lambda rating: int(rating[3]))
    rows = [(user, movie, *users[user][:3], genres[movie]) for user, movie, _, _ in ratings]
    label = np.array([float(rating[2]) >= 4 for rating in ratings], dtype=np.float32)
    return RealData(
        slots=("user_id", "movie_id", "gender", "age", "occupation", "genres"),
        ids_NP=vocabulary_ids(list(zip(*rows, strict=True)), range(6)),
        slot_of_P=tuple(range(6)),
        dense_NF=np.zeros((len(label), 0), dtype=np.float32),
        label_N=label,
        num_train=round(len(label) * 0.9),
        split="by time, last 10 % held out",
    )


LOADERS = {"criteo_85k": criteo, "avazu_37k": avazu, "movielens_1m": movielens}
