from __future__ import annotations

import pytest

from clickmill.errors import ConfigError, DataError
from clickmill.store.remote.store import RemoteFile
from clickmill.store.remote.url import is_url, parse, shown


@pytest.mark.parametrize(
    ("text", "url", "name"),
    [
        ("s3://bucket/a/b c.gz", "s3://bucket/a/b c.gz", "b c.gz"),
        ("s3a://bucket/a%20b", "s3://bucket/a%20b", "a%20b"),
        ("hdfs://host:8020//data/x", "hdfs://host:8020/data/x", "x"),
        ("afs://host:9902/data/", "hdfs://host:9902/data/", "data"),
        ("HTTP://host:80/a%20b?x=1#y", "http://host:80/a%20b?x=1", "a b"),
        ("https://host", "https://host/", ""),
    ],
)
def test_urls_have_one_spelling(text, url, name):
    assert is_url(text)
    assert parse(text).url == url
    assert parse(text).name == name


@pytest.mark.parametrize("text", ["hdfs:/data/x", "hdfs:///data/x", "afs:/data/x", "afs:///data/x"])
def test_a_url_without_a_host_is_on_the_named_file_system(text, monkeypatch):
    monkeypatch.setenv("CLICKMILL_FS_NAME", "afs://name.node:9902/")
    assert parse(text).url == "hdfs://name.node:9902/data/x"
    monkeypatch.delenv("CLICKMILL_FS_NAME")
    with pytest.raises(ConfigError, match="names no host, and CLICKMILL_FS_NAME is not set"):
        parse(text)


def test_paths_are_no_urls():
    assert not any(
        is_url(text) for text in ("data/x", "/data/x", "C:/data", "a:b", "hdfs:x", "{workspace}/x")
    )


def test_what_means_nothing_is_refused():
    with pytest.raises(ConfigError, match=r"`gs://bucket/x` is in no store that is known"):
        parse("gs://bucket/x")
    with pytest.raises(ConfigError, match="names no bucket"):
        parse("s3:///x")
    with pytest.raises(DataError, match="a name that no local file can have"):
        _ = RemoteFile("http://host/a/..%2Fb", 1, "").name


def test_secrets_are_not_shown():
    assert shown("https://me:word@host/a?signature=1") == "https://host/a?…"
    assert shown("s3://bucket/a?b") == "s3://bucket/a?b"
