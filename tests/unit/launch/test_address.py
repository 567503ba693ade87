from __future__ import annotations

import pytest

from clickmill.launch.address import Address, parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.0.0.1:7164", Address("10.0.0.1", 7164)),
        (" node-3.cluster:1 ", Address("node-3.cluster", 1)),
        ("[fd00::1]:7164", Address("fd00::1", 7164)),
        ("127.0.0.1:0", Address("127.0.0.1", 0)),
    ],
)
def test_an_address_is_read_and_written(text: str, address: Address) -> None:
    assert parse_address(text) == address
    assert parse_address(str(address)) == address


@pytest.mark.parametrize("text", ["10.0.0.1", "[fd00::1]"])
def test_a_bare_host_takes_the_default_port(text: str) -> None:
    assert parse_address(text, default_port=6174).port == 6174
    with pytest.raises(ValueError, match="has no port"):
        parse_address(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (":7164", "names no host"),
        ("a:-1", "is no port"),
        ("a:65536", "is no port"),
        ("a:x", "is no port"),
        ("a:", "is no port"),
        ("fd00::1", "write IPv6 as"),
        ("a:٣", "is no port"),
    ],
)
def test_what_is_no_address_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_address(text, default_port=1)
