from __future__ import annotations

import threading

from clickmill.data.files import FileRange
from clickmill.store.remote.fetching import Fetcher
from clickmill.store.remote.finding import find_remote
from clickmill.train.cluster.prefetching import Prefetcher
from clickmill.train.cluster.units import Unit


def test_the_file_that_comes_next_is_brought_and_no_other(web, own_cache):
    for number in range(6):
        (web.root / f"part-{number}").write_text(f"{number}")
    files = [FileRange(file) for file in find_remote(web.url)]
    units = [Unit(file, is_validation=False, source=file.identity) for file in files]
    order = [5, 4, 3, 2, 1, 0]
    brought = threading.Event()

    class Watched(Fetcher):
        def hold(self, file, **options):
            copy = super().hold(file, **options)
            brought.set()
            return copy

    prefetcher = Prefetcher(2, lambda _: Watched())
    prefetcher.lease(units, order, 5)
    assert brought.wait(60)
    assert [path.name for path in own_cache.rglob("content/*")] == ["part-3"]
    # Behind the last there is nothing.
    prefetcher.lease(units, order, 1)
    prefetcher.close()
    assert [path.name for path in own_cache.rglob("content/*")] == ["part-3"]
