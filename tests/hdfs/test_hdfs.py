"""HDFS, for real: a name node and a data node of Hadoop's own."""

from __future__ import annotations

import pytest

from clickmill.errors import AccessError, RemoteError
from clickmill.store.remote.finding import find_remote
from clickmill.train.api import evaluate, train
from tests.checkpoints import fingerprint
from tests.remote.contract import StoreContract, names, put
from tests.unit.train.conftest import small_config


class TestHdfs(StoreContract):
    @pytest.fixture(name="base")
    def _base(self, home):
        return home


def test_older_names_lead_to_the_same_files(home, name_node, tmp_path, monkeypatch):
    put(f"{home}/part-0", b"1", tmp_path)
    path = home.removeprefix(f"hdfs://{name_node}/")
    assert names(find_remote(f"afs://{name_node}/{path}")) == ["part-0"]
    monkeypatch.setenv("CLICKMILL_FS_NAME", f"afs://{name_node}")
    assert names(find_remote(f"afs:/{path}/part-*")) == ["part-0"]
    assert names(find_remote(f"hdfs:///{path}")) == ["part-0"]


def test_who_may_not_is_refused_without_a_word_of_the_password(home, tmp_path, monkeypatch):
    monkeypatch.setenv("CLICKMILL_FS_UGI", "bob,the-password")
    with pytest.raises(AccessError, match="user=bob, access=WRITE") as caught:
        put(f"{home}/part-0", b"1", tmp_path)
    assert "the-password" not in f"{caught.value} {caught.value.hint}"


def test_a_name_node_that_is_down_is_given_up_after_a_while(own_cache, monkeypatch):
    monkeypatch.setenv("CLICKMILL_REMOTE_PATIENCE_S", "0")
    with pytest.raises(RemoteError, match=r"hdfs://127\.0\.0\.1:1/data`: Connection refused"):
        find_remote("hdfs://127.0.0.1:1/data")


def test_a_run_reads_from_hdfs_and_leaves_its_checkpoint_there(home, workplace, tmp_path):
    def run(*overrides):
        return train(small_config("runner.0.epochs=1", *overrides))[0]

    for name in ("train.tsv", "test.tsv"):
        put(f"{home}/log/{name}", (workplace / name).read_bytes(), tmp_path)
    run("runner.0.output_path=local")
    summary = run(
        "runner.0.output_path=remote",
        f"dataset.0.data_path={home}/log/train.tsv",
        f"dataset.0.validation.data_path={home}/log/test.tsv",
        f"runner.0.save_checkpoint_path={home}/models",
    )
    assert fingerprint(workplace / "remote/checkpoints/0") == fingerprint(workplace / "local/checkpoints/0")
    assert summary["uploaded"] == f"{home}/models/0"
    here = evaluate(small_config(), checkpoints=["remote/checkpoints/0"])
    there = evaluate(small_config(), checkpoints=[f"{home}/models/0"])
    assert there["auc"] == here["auc"]
