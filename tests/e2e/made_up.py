"""Small files in the forms of Avazu, MovieLens and a JSON log, made from a seed, with a signal in them.

Nothing here comes from the real files but the names of the columns.
"""

from __future__ import annotations

import json
import math
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_CATEGORIES = (
    *("C1", "banner_pos", "site_id", "site_domain", "site_category", "app_id", "app_domain", "app_category"),
    *("device_id", "device_ip", "device_model", "device_type", "device_conn_type"),
    *(f"C{number}" for number in range(14, 22)),
)
AVAZU_COLUMNS = ("id", "click", "hour", *_CATEGORIES)
GENRES = ("Action", "Animation", "Children's", "Comedy", "Drama", "Musical", "Sci-Fi", "Thriller")
AGES = (1, 18, 25, 35, 45, 50, 56)


def write_avazu(path: Path, *, rows: int = 4000, seed: int = 0) -> Path:
    """A CSV in the order of time; whether an ad is clicked depends on its site and its `C14`."""
    draw = random.Random(seed)
    sizes = dict.fromkeys(_CATEGORIES, 5) | {"device_ip": 300, "device_model": 50}
    sites = [draw.gauss(0.0, 1.5) for _ in range(20)]
    ads = [draw.gauss(0.0, 1.5) for _ in range(15)]
    lines = [",".join(AVAZU_COLUMNS)]
    for number in range(rows):
        day, hour = divmod(number * 96 // rows, 24)
        values = {name: f"{draw.randrange(size):08x}" for name, size in sizes.items()}
        site, ad = draw.randrange(len(sites)), draw.randrange(len(ads))
        values |= {
            "id": str(10_000_000_000_000_000_000 + number),
            "hour": f"1410{21 + day:02d}{hour:02d}",
            "site_id": f"5173{site:04x}",
            "C14": str(15_700 + ad),
            "click": str(int(draw.random() < _sigmoid(sites[site] + ads[ad] - 1.0))),
        }
        lines.append(",".join(values[name] for name in AVAZU_COLUMNS))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return path


def write_movielens(folder: Path, *, users: int = 120, movies: int = 60, seed: int = 0) -> Path:
    """`ratings.dat` by user and time, `users.dat`, `movies.dat` in latin-1; stars follow taste and genre."""
    draw = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    kinds = [draw.sample(range(len(GENRES)), draw.choice((1, 2))) for _ in range(movies)]
    quality = [draw.gauss(0.0, 0.7) for _ in range(movies)]
    user_lines, rating_lines = [], []
    for user in range(1, users + 1):
        gender, age = draw.choice("MF"), draw.choice(AGES)
        user_lines.append(f"{user}::{gender}::{age}::{draw.randrange(21)}::{draw.randrange(100_000):05d}")
        # People of one kind share a taste; some of it is their own, which only their history tells.
        shared = random.Random(f"{gender}{age}")
        taste = [shared.gauss(0.0, 0.8) + draw.gauss(0.0, 0.8) for _ in GENRES]
        seconds = 956_703_932 + draw.randrange(10_000_000)
        for movie in draw.sample(range(movies), movies * 2 // 3):
            liking = quality[movie] + sum(taste[kind] for kind in kinds[movie]) / len(kinds[movie])
            stars = min(5, max(1, round(3.4 + liking + draw.gauss(0.0, 0.4))))
            seconds += draw.randrange(1, 100_000)
            rating_lines.append(f"{user}::{movie + 1}::{stars}::{seconds}")
    movie_lines = []
    for movie, chosen in enumerate(kinds):
        names = "|".join(GENRES[kind] for kind in chosen)
        movie_lines.append(f"{movie + 1}::Le Café No. {movie + 1} (19{movie % 90 + 10})::{names}")
    for name, lines in (("users", user_lines), ("movies", movie_lines), ("ratings", rating_lines)):
        (folder / f"{name}.dat").write_text("\n".join(lines) + "\n", encoding="latin-1")
    return folder


def write_plays(path: Path, *, rows: int = 2000, seed: int = 0) -> Path:
    """JSON lines of songs that were played; how long depends on the tags of the song and on the user."""
    world, draw = random.Random("world"), random.Random(seed)
    tags = ("rock", "jazz", "folk", "loud", "slow", "live")
    songs = [(world.sample(tags, 2), world.gauss(0.0, 1.0)) for _ in range(40)]
    users = [{tag: world.gauss(0.0, 1.2) for tag in tags} for _ in range(50)]
    lines = []
    for _ in range(rows):
        user, song = draw.randrange(len(users)), draw.randrange(len(songs))
        words, quality = songs[song]
        liking = quality + sum(users[user][tag] for tag in words)
        person = {"id": f"u{user}"} | ({"country": draw.choice(["de", "cn"])} if draw.random() < 0.9 else {})
        seconds = 90.0 if draw.random() < _sigmoid(liking) else 12.5
        event = {
            "user": person,
            "song": f"s{song}",
            "tags": words,
            "seconds": seconds,
            "volume": draw.random(),
        }
        lines.append(json.dumps(event))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return path


def _sigmoid(value: float) -> float:
    return 1.0 / (1.0 + math.exp(-value))
