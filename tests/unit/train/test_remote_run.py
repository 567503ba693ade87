"""Runs whose data, or whose checkpoints, are elsewhere."""

from __future__ import annotations

import json
import logging
import shutil

import pytest
from tests.checkpoints import fingerprint, history
from tests.remote.contract import put
from tests.unit.train.conftest import small_config

from clickmill.errors import ConfigError, DataError, FormatError, StorageError
from clickmill.store.remote.finding import find_remote
from clickmill.train.api import evaluate, train
from clickmill.train.checkpoint import open_checkpoint
from clickmill.train.remote_checkpoint import local_checkpoint, newest_checkpoint, upload_checkpoint


def run(*overrides, resume=False):
    return train(small_config("runner.0.epochs=1", *overrides), resume=resume)[0]


@pytest.fixture(name="trained")
def _trained(workplace):
    """A checkpoint of a run with local data."""
    run("runner.0.output_path=local")
    return workplace / "local" / "checkpoints" / "0"


def test_data_elsewhere_trains_to_the_same_bits(workplace, trained, bucket, tmp_path):
    for name in ("train.tsv", "test.tsv"):
        put(f"{bucket}/log/{name}", (workplace / name).read_bytes(), tmp_path)
    run(
        "runner.0.output_path=remote",
        f"dataset.0.data_path={bucket}/log/tr*.tsv",
        f"dataset.0.validation.data_path={bucket}/log/test.tsv",
    )
    assert fingerprint(workplace / "remote/checkpoints/0") == fingerprint(trained)
    assert history(workplace / "remote") == history(workplace / "local")


def test_a_run_that_was_stopped_goes_on_with_data_elsewhere(workplace, web, tmp_path):
    shutil.copy(workplace / "train.tsv", web.root)
    options = ("runner.0.save_step_interval=7", f"dataset.0.data_path={web.url}/train.tsv")
    run("runner.0.output_path=through", *options)
    run("runner.0.output_path=stopped", "runner.0.max_batches=14", *options)
    shutil.rmtree(workplace / "stopped/checkpoints")
    run("runner.0.output_path=stopped", *options, resume=True)
    assert fingerprint(workplace / "stopped/checkpoints/0") == fingerprint(
        workplace / "through/checkpoints/0"
    )


def test_what_opens_a_url_is_in_no_file_of_the_run_and_may_be_another_when_it_goes_on(workplace, web):
    for name in ("train.tsv", "test.tsv"):
        shutil.copy(workplace / name, web.root)

    def options(word):
        return (
            f"dataset.0.data_path={web.url}/train.tsv?sig={word}",
            f"dataset.0.validation.data_path={web.url}/test.tsv?sig={word}",
        )

    run("runner.0.max_batches=14", "runner.0.save_step_interval=7", *options("first-word"))
    shutil.rmtree(workplace / "run/checkpoints")
    run("runner.0.save_step_interval=7", *options("other-word"), resume=True)
    files = [path for path in (workplace / "run").rglob("*") if path.is_file()]
    assert any(path.name == "config.json" for path in files)
    assert any(path.name == "settings.json" for path in files)
    assert [path for path in files if b"-word" in path.read_bytes()] == []


def test_a_checkpoint_of_before_that_holds_whole_urls_shows_no_change_and_no_secret(
    workplace, web, monkeypatch, caplog
):
    shutil.copy(workplace / "test.tsv", web.root)
    options = (
        "runner.0.save_step_interval=7",
        f"dataset.0.validation.data_path={web.url}/test.tsv?sig=some-word",
    )
    with monkeypatch.context() as before:
        before.setattr("clickmill.train.resuming.without_secrets", lambda values: values)
        run("runner.0.max_batches=14", *options)
    shutil.rmtree(workplace / "run/checkpoints")
    (settings,) = (workplace / "run/steps/epoch_0_batch_14").glob("settings.json")
    assert "some-word" in settings.read_text()
    run(*options, resume=True)
    assert "some-word" not in caplog.text
    assert "validation" not in caplog.text


def test_a_checkpoint_goes_elsewhere_and_scores_there_as_here(workplace, bucket):
    summary = run(f"runner.0.save_checkpoint_path={bucket}/models")
    assert summary["checkpoint"] == "run/checkpoints/0"
    assert summary["uploaded"] == f"{bucket}/models/0"
    here = evaluate(small_config())
    there = evaluate(small_config(), checkpoints=[f"{bucket}/models/0"])
    assert there.pop("checkpoint") == f"{bucket}/models/0"
    del here["checkpoint"]
    assert there == here
    shutil.rmtree(workplace / "run")
    found = evaluate(small_config(f"runner.0.save_checkpoint_path={bucket}/models"))
    assert found["auc"] == here["auc"]
    run("runner.0.save_checkpoint_style=pass", f"runner.0.save_checkpoint_path={bucket}/models")
    with pytest.raises(DataError, match=r"there are checkpoints of 2 runs at `s3://.*/models`"):
        newest_checkpoint(f"{bucket}/models")


def test_a_run_begins_with_a_checkpoint_elsewhere_as_with_one_here(workplace, trained, bucket):
    upload_checkpoint(trained, f"{bucket}/0")
    for key in ("init_model_path", "init_pretraining_model_path"):
        run("runner.0.output_path=from-here", f"runner.0.{key}={trained}")
        run("runner.0.output_path=from-there", f"runner.0.{key}={bucket}/0")
        here, there = (
            fingerprint(workplace / name / "checkpoints/0") for name in ("from-here", "from-there")
        )
        assert there == here


def test_differences_are_put_there_with_what_they_build_on(workplace, web, monkeypatch):
    monkeypatch.setenv("CLICKMILL_UPLOAD", f"{web.url}/all")
    run("runner.0.save_step_interval=10", "runner.0.save_step_full_interval=2")
    there = local_checkpoint(f"{web.url}/all/steps/epoch_0_batch_20")
    here = workplace / "run/steps/epoch_0_batch_20"
    assert open_checkpoint(here).manifest.base == "epoch_0_batch_10"
    assert fingerprint(there) == fingerprint(here)
    assert newest_checkpoint(f"{web.url}/all/checkpoints") == f"{web.url}/all/checkpoints/0"


def test_the_manifest_comes_last(trained, web):
    upload_checkpoint(trained, f"{web.url}/0")
    web.requests()
    (trained / "checkpoint.json").write_text((trained / "checkpoint.json").read_text() + "\n")
    upload_checkpoint(trained, f"{web.url}/0")
    changes = [each for each in web.requests() if each.startswith(("PUT", "DELETE"))]
    manifest = "/0/checkpoint.json"
    assert (changes[0], changes[-1]) == (f"DELETE {manifest}", f"PUT {manifest}")
    assert len(changes) == 2 + len(open_checkpoint(trained).manifest.files)
    assert not upload_checkpoint(trained, f"{web.url}/0")


def test_half_a_checkpoint_is_none(trained, web, monkeypatch):
    monkeypatch.setenv("CLICKMILL_REMOTE_PATIENCE_S", "0")
    (web.root / "0").mkdir()
    (web.root / "0/tables").write_text("in the way")
    with pytest.raises(Exception, match="tables"):
        upload_checkpoint(trained, f"{web.url}/0")
    assert (web.root / "0/dense.safetensors").exists()
    with pytest.raises(DataError, match=rf"no checkpoint at `{web.url}/0`"):
        local_checkpoint(f"{web.url}/0")
    assert newest_checkpoint(web.url) is None


def test_a_checkpoint_that_is_damaged_there_is_refused(trained, web):
    upload_checkpoint(trained, f"{web.url}/0")
    path = web.root / "0/dense.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(FormatError, match="its digest is not the manifest's"):
        evaluate(small_config(), checkpoints=[f"{web.url}/0"])
    path.unlink()
    manifest = json.loads((web.root / "0/checkpoint.json").read_text())
    (web.root / "0/checkpoint.json").write_text(json.dumps({**manifest, "batch": 1}))
    with pytest.raises(FormatError, match="is not there; the manifest says"):
        local_checkpoint(f"{web.url}/0")
    files = {"../../outside": {"bytes": 1, "sha256": ""}}
    (web.root / "0/checkpoint.json").write_text(json.dumps({**manifest, "files": files}))
    with pytest.raises(FormatError, match="which is not inside it"):
        local_checkpoint(f"{web.url}/0")


def test_the_keep_policy_holds_elsewhere_too(workplace, web):
    options = ("runner.0.epochs=3", "runner.0.save_checkpoint_keep={last: 1, best: 0}")
    train(small_config(f"runner.0.save_checkpoint_path={web.url}/models", *options))
    assert {file.name for file in find_remote(f"{web.url}/models/*/checkpoint.json")} == {"checkpoint.json"}
    assert [path.parent.name for path in web.root.rglob("checkpoint.json")] == ["2"]
    assert not list((web.root / "models/0").rglob("*.rows"))


def test_a_run_does_not_end_well_before_its_checkpoint_is_there(workplace, web, monkeypatch, caplog):
    monkeypatch.setenv("CLICKMILL_REMOTE_PATIENCE_S", "0")
    options = (f"runner.0.save_checkpoint_path={web.url}/models", "runner.0.save_checkpoint_interval=1")
    (web.root / "models").write_text("in the way")
    with (
        caplog.at_level(logging.WARNING),
        pytest.raises(StorageError, match="cannot put the checkpoint to") as caught,
    ):
        run(*options)
    assert "checkpoint.not_uploaded" in caplog.text
    assert "go on with `--resume`" in str(caught.value.hint)
    (web.root / "models").unlink()
    assert run(*options, resume=True)["uploaded"] == f"{web.url}/models/0"
    assert fingerprint(local_checkpoint(f"{web.url}/models/0")) == fingerprint(
        workplace / "run/checkpoints/0"
    )


def test_a_run_folder_cannot_be_elsewhere(workplace, monkeypatch):
    with pytest.raises(ConfigError, match=r"output_path`: is a URL, and must be a path of this host"):
        run("runner.0.output_path=s3://bucket/run")
    monkeypatch.setenv("CLICKMILL_UPLOAD", "models")
    with pytest.raises(ConfigError, match="CLICKMILL_UPLOAD is `models`; it must be a URL"):
        run()
