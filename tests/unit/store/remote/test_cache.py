from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest
from tests.small_files import small_files

from clickmill.errors import ConfigError, StorageError
from clickmill.store.remote.cache import Cache


def filler(num_bytes, calls=None):
    def fill(folder):
        if calls is not None:
            calls.append(folder)
        (folder / "file").write_bytes(b"x" * num_bytes)

    return fill


def hold(cache, key, num_bytes=10, **options):
    found = cache.hold(key, num_bytes, filler(num_bytes), **options)
    return None if found is None else found[0]


def keys_in(cache, keys):
    return [key for key in keys if cache.path_of(key).is_dir()]


@pytest.fixture(name="cache")
def _cache(tmp_path):
    return Cache(tmp_path / "cache", 30, room_patience_s=0)


def test_a_copy_is_made_once(cache):
    calls = []
    for was_there in (False, True, True):
        held, found = cache.hold("a", 10, filler(10, calls))
        assert found is was_there
        assert (held.path / "file").read_bytes() == b"x" * 10
        held.release()
    assert len(calls) == 1
    assert held.path == cache.path_of("a")


def test_the_longest_unused_copies_go_first(cache):
    for number, key in enumerate("abc"):
        hold(cache, key).release()
        os.utime(cache.path_of(key).parent.with_suffix(".lock"), (number, number))
    hold(cache, "a").release()  # it is the newest now
    hold(cache, "d", 5).release()
    assert keys_in(cache, "abcd") == ["a", "c", "d"]
    hold(cache, "e", 30).release()
    assert keys_in(cache, "abcde") == ["e"]


def test_what_is_used_stays(cache):
    held = [hold(cache, key) for key in "abc"]
    assert hold(cache, "d", is_needed=False) is None
    with pytest.raises(StorageError, match="all that it holds is in use") as caught:
        hold(cache, "d")
    assert "CLICKMILL_CACHE_BYTES" in str(caught.value.hint)
    assert keys_in(cache, "abcd") == ["a", "b", "c"]
    held[1].release()
    hold(cache, "d").release()
    assert keys_in(cache, "abcd") == ["a", "c", "d"]


def test_room_that_somebody_gives_back_is_waited_for(tmp_path):
    cache = Cache(tmp_path / "cache", 10, room_patience_s=60)
    held = hold(cache, "a")
    threading.Timer(0.01, held.release).start()
    assert hold(cache, "b") is not None


def test_a_copy_that_can_never_fit_is_refused_at_once(tmp_path):
    cache = Cache(tmp_path / "cache", 10, room_patience_s=1e9)
    with pytest.raises(StorageError, match=r"a copy of 11 bytes is needed, and the cache .* may hold 10"):
        hold(cache, "a", 11)


def test_a_failure_leaves_nothing(cache):
    def fail(folder):
        (folder / "half").write_text("half")
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        cache.hold("a", 10, fail)
    assert {path.name for path in cache.folder.iterdir()} == {"room.lock"}


def test_a_disk_that_is_full_is_told(cache):
    with small_files(5), pytest.raises(OSError, match="too large"):
        hold(cache, "a")
    with small_files(0), pytest.raises(StorageError, match=r"cannot write .*: File too large"):
        hold(cache, "b")


HOLDER = """
import os, sys, time
from pathlib import Path
from clickmill.store.remote.cache import Cache

def fill(folder):
    (folder / "file").write_bytes(b"half" * 5)
    if {is_slow}:
        print("filling", flush=True)
        sys.stdin.read()

held, _ = Cache(Path({folder!r}), 30, room_patience_s=0).hold("a", 20, fill)
print("held", flush=True)
sys.stdin.read()
"""


def holder(cache, *, is_slow=False):
    code = HOLDER.format(folder=str(cache.folder), is_slow=is_slow)
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def test_another_process_keeps_what_it_uses_until_it_is_killed(cache):
    process, said = holder(cache)
    with process:
        assert said == "held"
        assert hold(cache, "b", 20, is_needed=False) is None
        process.kill()
    assert hold(cache, "b", 20, is_needed=False) is not None
    assert keys_in(cache, "ab") == ["b"]


def test_a_copy_that_was_half_made_is_never_seen(cache):
    process, said = holder(cache, is_slow=True)
    with process:
        assert said == "filling"
        assert not cache.path_of("a").exists()
        # What is on its way counts.
        assert hold(cache, "b", 20, is_needed=False) is None
        process.send_signal(signal.SIGKILL)
    held, was_there = cache.hold("a", 20, filler(20))
    assert not was_there
    assert (held.path / "file").read_bytes() == b"x" * 20
    assert not (cache.path_of("a").parent / "partial").exists()


def test_who_comes_while_another_makes_it_waits_for_it(cache):
    process, said = holder(cache, is_slow=True)
    with process:
        assert said == "filling"
        found = []
        waiter = threading.Thread(target=lambda: found.append(cache.hold("a", 20, filler(20))))
        waiter.start()
        process.communicate("")
    waiter.join()
    held, was_there = found[0]
    assert was_there
    assert (held.path / "file").read_bytes() == b"half" * 5


def test_who_comes_too_late_to_make_it_does_not_wait_for_those_who_use_it(cache, monkeypatch):
    """Trainers of one round use a file together: one that waited for the other would wait for itself."""
    look = cache._use
    others = []

    def look_just_before_another_makes_it(*arguments):
        found = look(*arguments)
        if not others:
            assert found is None
            others.append(hold(Cache(cache.folder), "a"))
        return found

    monkeypatch.setattr(cache, "_use", look_just_before_another_makes_it)
    calls = []
    held, _ = cache.hold("a", 10, filler(10, calls))
    assert (held.path, calls) == (others[0].path, [])


def test_the_wait_for_another_process_can_be_given_up(cache):
    class GivenUpError(Exception):
        pass

    def give_up():
        raise GivenUpError

    process, said = holder(cache, is_slow=True)
    with process:
        assert said == "filling"
        with pytest.raises(GivenUpError):
            hold(cache, "a", while_waiting=give_up)
        process.communicate("")


def test_the_environment_says_where_and_how_much(tmp_path, monkeypatch):
    monkeypatch.setenv("CLICKMILL_CACHE", str(tmp_path / "own"))
    monkeypatch.setenv("CLICKMILL_CACHE_BYTES", "15B")
    cache = Cache.of_environment()
    hold(cache, "a").release()
    assert cache.path_of("a").is_relative_to(tmp_path / "own")
    with pytest.raises(StorageError, match="may hold 15"):
        hold(cache, "b", 16)
    monkeypatch.setenv("CLICKMILL_CACHE_BYTES", "much")
    with pytest.raises(ConfigError, match="CLICKMILL_CACHE_BYTES: `much` is no size"):
        Cache.of_environment()
