from __future__ import annotations

import urllib.request

import pytest
from tests.remote.contract import StoreContract, names, put

from clickmill.errors import AccessError, RemoteError
from clickmill.store.remote.finding import find_remote
from clickmill.store.remote.opening import open_store
from clickmill.store.remote.url import parse


class TestS3(StoreContract):
    @pytest.fixture(name="base")
    def _base(self, bucket):
        return f"{bucket}/some/where"


def test_a_bucket_that_is_not_there_is_named(bucket, tmp_path):
    with pytest.raises(RemoteError, match="there is no bucket `nowhere`"):
        open_store(parse("s3://nowhere/a")).list(parse("s3://nowhere/a"))
    with pytest.raises(RemoteError, match="there is no bucket `nowhere`"):
        put("s3://nowhere/a", b"", tmp_path)


def test_a_store_that_is_down_is_given_up_after_a_while(bucket, monkeypatch):
    monkeypatch.setenv("CLICKMILL_REMOTE_PATIENCE_S", "0")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(RemoteError, match=r"s3://bucket-\d+/a.*error sending request") as caught:
        open_store(parse(f"{bucket}/a")).find(parse(f"{bucket}/a"))
    assert not isinstance(caught.value, AccessError)
    assert "CLICKMILL_REMOTE_PATIENCE_S" in str(caught.value.hint)


def test_an_object_of_the_folders_own_name_is_no_file(bucket, s3, tmp_path):
    put(f"{bucket}/folder/a", b"1", tmp_path)
    place = f"{s3.url}/{bucket.removeprefix('s3://')}/folder/"
    urllib.request.urlopen(urllib.request.Request(place, method="PUT")).close()
    assert names(find_remote(f"{bucket}/folder")) == ["a"]


def test_a_public_bucket_wants_no_keys(bucket, s3, tmp_path, monkeypatch):
    put(f"{bucket}/private", b"1", tmp_path)
    place = f"{s3.url}/{bucket.removeprefix('s3://')}/public"
    headers = {"x-amz-acl": "public-read"}
    urllib.request.urlopen(urllib.request.Request(place, headers=headers, method="PUT")).close()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    assert names(find_remote(f"{bucket}/public")) == ["public"]
    with pytest.raises(AccessError, match=r"no access: .*403 Forbidden") as caught:
        find_remote(f"{bucket}/private")
    assert "AWS_ACCESS_KEY_ID" in str(caught.value.hint)


def test_keys_come_from_files_too(bucket, tmp_path, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    shared = tmp_path / "credentials"
    shared.write_text("[other]\naws_access_key_id = a\naws_secret_access_key = b\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(shared))
    monkeypatch.setenv("AWS_PROFILE", "other")
    put(f"{bucket}/a", b"1", tmp_path)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        (tmp_path / name).write_text("c\n")
        monkeypatch.setenv(f"{name}_FILE", str(tmp_path / name))
    put(f"{bucket}/b", b"1", tmp_path)
