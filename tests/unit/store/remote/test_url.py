from __future__ import annotations

import pytest

from clickmill.errors import ConfigError, DataError
from clickmill.store.remote.store import RemoteFile
from clickmill.store.remote.url import fault_of, is_url, parse, shown, store_of


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
    paths = ("data/x", "/data/x", "C:/data", "C://data", "a:b", "hdfs:x", "{workspace}/x")
    assert not any(is_url(text) for text in paths)


def test_what_means_nothing_is_refused():
    with pytest.raises(ConfigError, match=r"`gs://bucket/x` is in no store that is known"):
        parse("gs://bucket/x")
    with pytest.raises(ConfigError, match="names no bucket"):
        parse("s3:///x")
    for text in ("http:///x", "http://?x"):
        with pytest.raises(ConfigError, match="names no host"):
            parse(text)
    with pytest.raises(ConfigError, match="has brackets that hold no address"):
        parse("http://[there/x")
    with pytest.raises(DataError, match="a name that no local file can have"):
        _ = RemoteFile("http://host/a/..%2Fb", 1, "").name


def test_secrets_are_not_shown():
    assert shown("https://me:word@host/a?signature=1") == "https://host/a?…"
    assert shown("s3://bucket/a?b") == "s3://bucket/a?b"


def test_the_store_of_a_url_is_known_by_its_scheme_in_any_case():
    assert [store_of(text) for text in ("S3A://b/x", "afs:/x", "HTTPS://h")] == ["s3", "hdfs", "https"]
    assert [store_of(text) for text in ("data/x", "gs://b/x")] == [None, None]


def test_what_is_wrong_with_a_url_is_known_without_the_environment(monkeypatch):
    monkeypatch.delenv("CLICKMILL_FS_NAME", raising=False)
    assert [fault_of(text) for text in ("hdfs:/x", "s3://b", "http://h/[ab]*")] == [None] * 3
    faults = [fault_of(text) for text in ("hfds://h/x", "ftp://h/x", "zzz://h/x")]
    assert [fault and fault.suggestion for fault in faults] == ["hdfs://", "http://", None]
