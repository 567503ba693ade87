"""MovieLens in the order of time, each rating with the films that its user liked shortly before."""

from __future__ import annotations

from collections import defaultdict, deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

LIKED = 4.0


class Reader:
    """`ratings.dat` with `users.dat` and `movies.dat` of its folder, as dicts.

    Options: `part` (`train`, or `test` for what comes last), `test_fraction` (0.1), `history` (20 films).
    Ratings are sorted in memory, and a test sample has a history too: all that its user did before.
    """

    def __init__(self, files: list[str], options: dict[str, Any]) -> None:
        self.files = [Path(file) for file in files]
        self.part = options.get("part", "train")
        self.test_fraction = float(options.get("test_fraction", 0.1))
        self.history = int(options.get("history", 20))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        folder = self.files[0].parent
        users = {user: rest for user, *rest in _rows(folder / "users.dat")}
        genres = {movie: kinds.split("|") for movie, _, kinds in _rows(folder / "movies.dat")}
        ratings = [row for file in self.files for row in _rows(file)]
        ratings.sort(key=lambda row: int(row[3]))  # stable: equal seconds stay in the order of the file
        num_train = round(len(ratings) * (1.0 - self.test_fraction))
        liked: defaultdict[str, deque[str]] = defaultdict(lambda: deque(maxlen=self.history))
        for number, (user, movie, rating, _) in enumerate(ratings):
            is_liked = float(rating) >= LIKED
            if (number < num_train) == (self.part == "train"):
                gender, age, occupation, _ = users[user]
                yield {
                    "click": int(is_liked),
                    "user_id": user,
                    "gender": gender,
                    "age": age,
                    "occupation": occupation,
                    "movie_id": movie,
                    "genres": genres[movie],
                    "liked": list(liked[user]),
                }
            if is_liked:
                liked[user].append(movie)


def _rows(path: Path) -> Iterator[list[str]]:
    with path.open(encoding="latin-1") as file:
        for line in file:
            yield line.rstrip("\n").split("::")
