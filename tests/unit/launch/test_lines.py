from __future__ import annotations

import asyncio

import pytest

from clickmill.launch.lines import MAX_LINE_BYTES, lines_of


async def _split(chunks: list[bytes]) -> list[bytes]:
    stream = asyncio.StreamReader()

    async def feed() -> None:
        for chunk in chunks:
            stream.feed_data(chunk)
            await asyncio.sleep(0)  # lets the reader take it
        stream.feed_eof()

    feeding = asyncio.create_task(feed())
    found = [line async for line in lines_of(stream)]
    await feeding
    return found


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ([], []),
        ([b"a\nb\n"], [b"a", b"b"]),
        ([b"a", b"b\nc", b"\n"], [b"ab", b"c"]),
        ([b"a\n\n", b"last"], [b"a", b"", b"last"]),
    ],
)
def test_lines_are_whole_however_they_arrive(chunks: list[bytes], lines: list[bytes]) -> None:
    assert asyncio.run(_split(chunks)) == lines


def test_a_line_without_end_is_cut_and_nothing_is_lost() -> None:
    chunk = b"x" * 65536
    found = asyncio.run(_split([chunk] * 40))
    assert len(found) > 1
    assert sum(map(len, found)) == 40 * len(chunk)
    assert max(map(len, found)) <= MAX_LINE_BYTES + len(chunk)
