"""Addresses with and without secrets."""

from __future__ import annotations

import pytest

from clickmill.config.backend.addresses import secret_in_address


@pytest.mark.parametrize(
    "text",
    [
        "http://h/x?sig=abc",
        "https://h/x?sp=r&se=2026&sig=abc%3D",
        "https://b.s3.amazonaws.com/k?X-Amz-Algorithm=AWS4&X-Amz-Credential=a%2Fb&X-Amz-Signature=00ff",
        "https://b/k?X-Amz-Security-Token=a",
        "https://b/k?x%2Damz%2Dsignature=a",
        "https://storage.googleapis.com/b/k?GoogleAccessId=a&Expires=1&Signature=b",
        "https://b.oss.com/k?OSSAccessKeyId=a",
        "https://h/x?v=2&access_token=a",
        "https://h/x?accesstoken=a",
        "https://h/x?api_key=a",
        "https://h/x?apikey=a",
        "https://h/x?auth_key=1-0-0-f",
        "https://h/x?wsSecret=a&wsTime=1",
        "https://h/x?password=a",
        "https://h/x?key=AIzaSyA-0123456789abcdef",
        "HTTPS://h/x?TOKEN=a",
        "git+https://h/x?token=a",
        "dataset.0.data_path=[http://h/x?v=1,http://h/y?sig=a]",
        'dataset.0.data_path=["http://h/x?v=1", "http://h/y?sig=a"]',
        "see http://h/x?sig=a#part",
    ],
)
def test_signature_or_token_behind_the_question_mark_is_a_secret(text: str) -> None:
    assert secret_in_address(text) == "a signature or token"


@pytest.mark.parametrize(
    "text", ["hdfs://me:word@there:9000/x", "https://me:word@h/x?v=1", "a s3n://key:secret@bucket b"]
)
def test_password_before_the_host_is_a_secret(text: str) -> None:
    assert secret_in_address(text) == "a password"


@pytest.mark.parametrize(
    "text",
    [
        "http://h/x",
        "http://h:8080/sig=abc",
        "http://h/x?version=3&raw=true",
        "http://h/x?versionId=3sL4kqtJlcpXroDTDmJrmSpXd3dIbrHY",
        "http://h/x?key=logs/2026-11-18/part-00001.tsv",
        "http://h/x?key=part-1.gz",
        "http://h/x?tokenizer=bert&design=a&assign=b&author=c&keyword=d&monkey=e",
        "http://h/x?sig=",
        "http://h/x#sig=abc",
        "s3://b/part-?token=1",
        "hdfs://me@there:9000/x",
        "token=abc&sig=def",
        "",
    ],
)
def test_other_addresses_hold_none(text: str) -> None:
    assert secret_in_address(text) is None
