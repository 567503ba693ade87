"""From what was asked for to the plan of a job: files, overrides, variables, data, credentials."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clickmill.errors import ConfigError
from clickmill.submit.kubernetes.data import data_overrides
from clickmill.submit.kubernetes.handing_over import plan
from clickmill.submit.kubernetes.job import access_of, plan_job
from clickmill.submit.kubernetes.manifest import manifest
from tests.unit.submit.jobs import request, write_job

CONFIG = """\
workspace: "./"
mode: train
runner:
- {name: train, class: cluster_train}
dataset:
- {name: log, data_path: ["{workspace}/train_data", "{workspace}/afs/day/*.tsv", other]}
phase:
- {name: first, model: "{workspace}/model.py", dataset_name: log}
"""
BACKEND = """\
backend: Kubernetes
config: {fs_name: "hdfs://there:9000/", fs_ugi: "me,pass-word"}
submit: {files: ./*.yaml, job_name: Criteo_Job}
kubernetes: {image: registry.example/clickmill:1, namespace: team}
"""
ELSEWHERE = "dataset.0.data_path=hdfs://there:9000/log"


@pytest.fixture(autouse=True)
def job(folder: Path) -> Path:
    write_job(folder, CONFIG, BACKEND)
    return folder


def test_files_travel_without_secrets() -> None:
    found = plan_job(request(), "team")
    assert set(found.package) == {"config.yaml", "model.py", "backend.yaml"}
    assert found.config_file == "config.yaml"
    assert b"pass-word" not in b"".join(found.package.values())


def test_overrides_reach_the_pods() -> None:
    found = plan_job(request("runner.0.epochs=7", "submit.k8s_trainers=3"), "team")
    assert found.overrides == ("runner.0.epochs=7",)
    (work,) = [item for item in manifest(found) if item["kind"] == "Job"]
    for task in work["spec"]["tasks"]:
        (container,) = task["template"]["spec"]["containers"]
        assert container["args"][-2:] == ["--set", "runner.0.epochs=7"]


def test_dollars_of_overrides_mean_nothing_to_kubernetes() -> None:
    found = plan_job(request("dataset.0.data_path='/a/$(HOME)/$$x'"), "team")
    (work,) = [item for item in manifest(found) if item["kind"] == "Job"]
    for task in work["spec"]["tasks"]:
        (container,) = task["template"]["spec"]["containers"]
        assert container["args"][-1] == "dataset.0.data_path='/a/$$(HOME)/$$$$x'"


def test_built_in_model_travels_by_name(folder: Path) -> None:
    from clickmill.submit.load import load_request

    found = plan_job(load_request("dnn", "backend.yaml", ["submit.files=[]"]), "team")
    assert (found.config_file, dict(found.package)) == ("dnn", {})


def test_folders_of_older_jobs_are_read_from_the_file_system() -> None:
    job = request("config.train_data_path=/user/me/train", "config.afs_remote_mount_point=/mount/")
    (override,) = data_overrides(job)
    name, _, value = override.partition("=")
    assert name == "dataset.0.data_path"
    assert json.loads(value) == [
        "hdfs://there:9000/user/me/train",
        "hdfs://there:9000/mount/day/*.tsv",
        "other",
    ]
    assert plan_job(job, "team").overrides == (override,)


def test_volume_that_is_mounted_there_comes_first() -> None:
    volumes = "kubernetes.volumes=[{name: data, claim: data, mount: ./train_data}]"
    assert list(data_overrides(request("config.train_data_path=/user/me/train", volumes))) == []


def test_folder_on_no_file_system_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"config\.fs_name`: is empty, but `config\.test_data_path`"):
        request("config.fs_name=''", "config.test_data_path=/x").check()


def test_checkpoints_are_put_to_the_place_of_the_job() -> None:
    job = request("config.output_path=/user/me/out", ELSEWHERE)
    assert job.check() == ()
    assert plan_job(job, "team").environment["CLICKMILL_UPLOAD"] == "hdfs://there:9000/user/me/out"
    assert "CLICKMILL_UPLOAD" not in plan_job(request(), "team").environment
    job = request("config.output_path=s3://models/out", "config.fs_name=''", ELSEWHERE)
    assert job.check() == ()
    assert plan_job(job, "team", KEYS).environment["CLICKMILL_UPLOAD"] == "s3://models/out"
    assert "AWS_SECRET_ACCESS_KEY" in access_of(job, KEYS)
    with pytest.raises(ConfigError, match=r"config\.fs_name`: is empty, but `config\.output_path`"):
        request("config.fs_name=''", "config.output_path=/x").check()


@pytest.mark.parametrize(
    ("named", "read"),
    [
        ("hdfs://other:8020/logs", "hdfs://other:8020/logs"),
        ("s3://logs/today/", "s3://logs/today/"),
        ("afs:/user/x", "afs:/user/x"),
        ("hdfs:///user/x", "hdfs:///user/x"),
        ("user/x", "hdfs://there:9000/user/x"),
    ],
)
def test_folders_of_the_job_may_be_urls_as_they_stand(named: str, read: str) -> None:
    data = "dataset.0.data_path=[train_data, train_data/day/*.tsv]"
    found = plan_job(request(f"config.train_data_path={named}", f"config.output_path={named}", data), "team")
    paths = json.loads(found.overrides[-1].partition("=")[2])
    assert paths == [read, f"{read.rstrip('/')}/day/*.tsv"]
    assert found.environment["CLICKMILL_UPLOAD"] == read


def test_url_with_a_host_needs_no_file_system_of_the_job() -> None:
    named = [
        f"config.{key}=s3://logs" for key in ("train_data_path", "afs_remote_mount_point", "output_path")
    ]
    data = "dataset.0.data_path=[train_data, afs/day]"
    assert request("config.fs_name=''", *named, data).check() == ()


def test_url_without_a_host_needs_the_file_system_of_the_job() -> None:
    with pytest.raises(ConfigError, match=r"config\.fs_name`: is empty, but `config\.train_data_path`"):
        request("config.fs_name=''", "config.train_data_path=afs:/x").check()
    job = request(
        "config.fs_name=there:9000", "config.train_data_path=afs:/x", "dataset.0.data_path=train_data"
    )
    assert job.check() == ()


def test_keys_go_along_to_the_store_of_a_folder_of_the_job() -> None:
    job = request("config.train_data_path=s3://logs", "dataset.0.data_path=train_data")
    assert "AWS_SECRET_ACCESS_KEY" in access_of(job, KEYS)


@pytest.mark.parametrize("url", ["s3://models/today", "S3://models/today", "s3n://models/today"])
@pytest.mark.parametrize(
    "key", ["save_checkpoint_path", "save_step_path", "init_model_path", "init_pretraining_model_path"]
)
def test_keys_go_along_where_only_checkpoints_are_in_s3(key: str, url: str) -> None:
    job = request(f"runner.0.{key}={url}", ELSEWHERE)
    assert job.check() == ()
    assert "AWS_SECRET_ACCESS_KEY" in access_of(job, KEYS)
    assert plan_job(job, "team", KEYS).environment["AWS_REGION"] == "here"


def test_token_goes_along_where_checkpoints_are_put_behind_http() -> None:
    token = {"CLICKMILL_HTTP_TOKEN": "sesame"}
    job = request("runner.0.save_checkpoint_path=HTTPS://files/models", ELSEWHERE)
    assert access_of(job, token)["CLICKMILL_HTTP_TOKEN"] == "sesame"
    job = request("kubernetes.env={CLICKMILL_UPLOAD: 'https://files/models'}", ELSEWHERE)
    assert access_of(job, token)["CLICKMILL_HTTP_TOKEN"] == "sesame"


@pytest.mark.parametrize(
    ("overrides", "key", "words"),
    [
        (
            ["config.fs_name=nn:8020", "config.output_path=/out"],
            "config.fs_name",
            "write `hdfs://` or `afs://`",
        ),
        (
            ["config.fs_name=nn:8020", "config.train_data_path=/in"],
            "config.fs_name",
            "`config.train_data_path`",
        ),
        (["config.fs_name='hdfs://'", "config.output_path=/out"], "config.fs_name", "names no host"),
        (
            ["config.fs_name='hfds://nn'", "config.output_path=/out"],
            "config.fs_name",
            "did you mean `hdfs://`",
        ),
        (["config.output_path='ftp://b/out'"], "config.output_path", "is in no store that is known"),
        (["config.thirdparty_path='s3:///x'"], "config.thirdparty_path", "names no bucket"),
    ],
)
def test_place_that_pods_could_not_reach_is_an_error(overrides: list[str], key: str, words: str) -> None:
    for refused in (request(*overrides, ELSEWHERE).check, lambda: plan(request(*overrides, ELSEWHERE))):
        with pytest.raises(ConfigError) as error:
            refused()
        (problem,) = error.value.problems
        assert problem.key == key
        assert words in str(problem)


def test_place_that_pods_could_not_reach_is_told_with_its_line(folder: Path) -> None:
    text = BACKEND.replace(
        'config: {fs_name: "hdfs://there:9000/"', 'config: {\n  output_path: /x, fs_name: "nn:8020"'
    )
    (folder / "backend.yaml").write_text(text)
    with pytest.raises(ConfigError) as error:
        request(ELSEWHERE).check()
    (problem,) = error.value.problems
    assert (problem.file, problem.line) == ("backend.yaml", 3)


def test_data_to_validate_with_is_found_there_too() -> None:
    validation = "dataset.0.validation={data_path: test_data/day}"
    (override,) = data_overrides(request("config.test_data_path=/user/me/test", validation))
    assert override == 'dataset.0.validation.data_path=["hdfs://there:9000/user/me/test/day"]'


def test_a_token_goes_along_where_http_is_read() -> None:
    token = {"CLICKMILL_HTTP_TOKEN": "sesame"}
    assert "CLICKMILL_HTTP_TOKEN" not in access_of(request(), token)
    job = request("dataset.0.data_path=https://files/log")
    assert access_of(job, token)["CLICKMILL_HTTP_TOKEN"] == "sesame"


def test_knobs_and_the_file_system_are_variables_of_the_pods() -> None:
    knobs = "{FLAGS_communicator_send_queue_size: 3, FLAGS_rpc_retry_times: 9, is_sgd_optimizer: false}"
    found = plan_job(request(f"config.communicator={knobs}"), "team").environment
    assert found["FLAGS_communicator_send_queue_size"] == "3"
    assert found["FLAGS_communicator_is_sgd_optimizer"] == "0"
    assert found["FLAGS_rpc_retry_times"] == "9"
    assert found["CLICKMILL_FS_NAME"] == "hdfs://there:9000/"


KEYS = {"AWS_ACCESS_KEY_ID": "key-id", "AWS_SECRET_ACCESS_KEY": "key-secret", "AWS_REGION": "here"}


def test_keys_for_s3_go_along_only_where_s3_is_read() -> None:
    assert access_of(request(), KEYS) == {"CLICKMILL_FS_UGI": "me,pass-word"}
    assert "AWS_REGION" not in plan_job(request(), "team", KEYS).environment
    job = request("dataset.0.data_path=s3://bucket/log")
    assert access_of(job, KEYS) == {
        "CLICKMILL_FS_UGI": "me,pass-word",
        "AWS_ACCESS_KEY_ID": "key-id",
        "AWS_SECRET_ACCESS_KEY": "key-secret",
    }
    assert plan_job(job, "team", KEYS).environment["AWS_REGION"] == "here"


def test_how_to_sign_in_goes_along_where_it_is_needed() -> None:
    told = {"AWS_SKIP_SIGNATURE": "true", "HADOOP_USER_NAME": "me"}
    on_s3 = request("dataset.0.data_path=s3://bucket/log", "config.fs_name=''")
    found = plan_job(on_s3, "team", told).environment
    assert (found["AWS_SKIP_SIGNATURE"], "HADOOP_USER_NAME" in found) == ("true", False)
    for job in (request(), request("dataset.0.data_path=afs:/log", "config.fs_name=''")):
        found = plan_job(job, "team", told).environment
        assert (found["HADOOP_USER_NAME"], "AWS_SKIP_SIGNATURE" in found) == ("me", False)
    own = plan_job(request("kubernetes.env={HADOOP_USER_NAME: you}"), "team", told).environment
    assert own["HADOOP_USER_NAME"] == "you"


def test_manifest_names_secrets_and_holds_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    outcome = plan(request("dataset.0.data_path=s3://bucket/log"))
    shown = json.dumps([outcome.facts, outcome.files, outcome.objects])
    assert not any(secret in shown for secret in ("pass-word", "key-id", "key-secret"))
    assert "AWS_SECRET_ACCESS_KEY" in outcome.files["criteo-job.yaml"]


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (None, "no Kubernetes cluster is known"),
        ("contexts: []\n", "names no current context"),
        ("users: [{name: u, user: {token: hunter2, x: [}}]", "kubeconfig:1:46: not valid YAML"),
    ],
)
def test_manifest_can_be_written_where_no_cluster_is_known(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    file: str | None,
    words: str,
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(folder / "kubeconfig"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    if file is not None:
        (folder / "kubeconfig").write_text(file)
    assert plan(request("kubernetes.namespace=''")).facts["namespace"] == "default"
    assert words in caplog.text
    assert "the manifest is for the namespace `default`" in caplog.text
    assert "hunter2" not in caplog.text
    caplog.clear()
    plan(request())
    assert caplog.text == ""
    with pytest.raises(ConfigError):
        plan(request("kubernetes.namespace=''", "kubernetes.context=no-such"))


# Credentials in files


def in_file(folder: Path, name: str, text: str) -> dict[str, str]:
    (folder / name).write_text(f"{text}\n")
    (folder / name).chmod(0o600)
    return {f"{name}_FILE": str(folder / name)}


def test_credentials_in_files_travel_as_variables(folder: Path) -> None:
    variables = {"AWS_SECRET_ACCESS_KEY": "key-secret", "AWS_SESSION_TOKEN": "for-today"}
    named = {"AWS_ACCESS_KEY_ID": "key-id"}
    for name, value in variables.items():
        named |= in_file(folder, name, value)
    named |= in_file(folder, "CLICKMILL_HTTP_TOKEN", "sesame")
    job = request("dataset.0.data_path=[s3://bucket/log, https://files/log]")
    assert access_of(job, named) == {
        **variables,
        "AWS_ACCESS_KEY_ID": "key-id",
        "CLICKMILL_HTTP_TOKEN": "sesame",
        "CLICKMILL_FS_UGI": "me,pass-word",
    }
    assert set(plan_job(job, "team", named).access_variables) == set(access_of(job, named))


def test_user_of_the_file_system_in_a_file_of_a_variable_travels(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (name, path) = in_file(folder, "CLICKMILL_FS_UGI", "you,other-word").popitem()
    monkeypatch.setenv(name, path)
    assert access_of(request(), {}) == {"CLICKMILL_FS_UGI": "you,other-word"}
    monkeypatch.setenv("CLICKMILL_FS_UGI", "third,word-word")
    assert access_of(request(), {}) == {"CLICKMILL_FS_UGI": "third,word-word"}


def test_credentials_in_a_file_that_is_not_there_are_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = request("dataset.0.data_path=s3://bucket/log")
    with pytest.raises(ConfigError, match="AWS_SECRET_ACCESS_KEY_FILE names `no-such`"):
        access_of(job, {"AWS_SECRET_ACCESS_KEY_FILE": "no-such"})
    assert access_of(request(), {"AWS_SECRET_ACCESS_KEY_FILE": "no-such"})
    with pytest.raises(ConfigError, match="ACCESS_KEY_FILE names `/dev/zero`, which is no regular file"):
        access_of(job, {"AWS_SECRET_ACCESS_KEY_FILE": "/dev/zero"})
    monkeypatch.setenv("CLICKMILL_FS_UGI_FILE", "no-such")
    with pytest.raises(ConfigError, match=r"CLICKMILL_FS_UGI_FILE: .* names `no-such`") as error:
        request()
    assert error.value.problems[0].key == "config.fs_ugi"


# Secrets where others can read them


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("AWS_SECRET_ACCESS_KEY", "set AWS_SECRET_ACCESS_KEY where you type `clickmill submit`"),
        ("AWS_SESSION_TOKEN", "it travels in a Secret"),
        ("CLICKMILL_FS_UGI", "set CLICKMILL_FS_UGI where you type `clickmill submit`"),
        ("CLICKMILL_HTTP_TOKEN", "it travels in a Secret"),
        ("CLICKMILL_SK", "pods do not need it"),
        ("CLICKMILL_TOKEN", "every job has a token of its own"),
    ],
)
def test_secret_as_a_variable_of_pods_is_refused_with_its_line(folder: Path, name: str, remedy: str) -> None:
    env = f"kubernetes:\n  image: a\n  env:\n    A: b\n    {name}: some-secret\n"
    (folder / "backend.yaml").write_text(BACKEND.partition("kubernetes:")[0] + env)
    for refused in (request().check, lambda: plan(request())):
        with pytest.raises(ConfigError) as error:
            refused()
        (problem,) = error.value.problems
        assert (problem.key, problem.line) == (f"kubernetes.env.{name}", 8)
        assert remedy in problem.message
        assert "some-secret" not in str(error.value)


def test_variable_with_the_name_of_a_secret_is_noted() -> None:
    env = "kubernetes.env={MY_PASSWORD: a, API_KEY: b, AWS_SECRET_ACCESS_KEY_FILE: /c, MONKEY: d}"
    notes = request(env, ELSEWHERE).check()
    assert [note.key for note in notes] == ["kubernetes.env.MY_PASSWORD", "kubernetes.env.API_KEY"]
    assert "kubernetes.volumes" in notes[0].message


@pytest.mark.parametrize("alias", ["*u", "'me,pass-word'", "x-pass-word"])
def test_secret_in_another_value_is_refused(folder: Path, alias: str) -> None:
    text = BACKEND.replace('fs_ugi: "me', 'fs_ugi: &u "me').replace(
        "namespace: team", f"namespace: team,\n  env: {{A: {alias}}}"
    )
    (folder / "backend.yaml").write_text(text)
    with pytest.raises(ConfigError, match="holds a secret") as error:
        request().check()
    assert [(problem.key, problem.line) for problem in error.value.problems] == [("kubernetes.env.A", 5)]
    assert "pass-word" not in str(error.value)


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("config.fs_name=hdfs://me:some-word@there:9000", "config.fs_name"),
        ("config.output_path=https://me:some-word@there/out", "config.output_path"),
        ("config.install=https://me:some-word@there/simple", "config.install"),
        ("dataset.0.data_path=[http://me:some-word@there/log]", "dataset.0.data_path.0"),
    ],
)
def test_password_in_an_address_is_refused(override: str, key: str) -> None:
    for refused in (request(override).check, lambda: plan(request(override))):
        with pytest.raises(ConfigError, match="has a password in an address") as error:
            refused()
        assert [problem.key for problem in error.value.problems] == [key]
        assert "some-word" not in str(error.value)


@pytest.mark.parametrize(
    ("overrides", "place"),
    [
        (["hyper_parameters.note=pass-word"], "--set hyper_parameters.note"),
        (["hyper_parameters.note=eDpwYXNzLXdvcmQ="], "--set hyper_parameters.note"),
        (["hyper_parameters={note: [a, pass-word]}"], "--set hyper_parameters"),
        (["hyper_parameters.pass-word=1"], "--set"),
        (["runner.0.epochs=2  # pass-word"], "--set runner.0.epochs"),
        (["hyper_parameters.note=pass-word", "hyper_parameters.note=b"], "--set hyper_parameters.note"),
        (["dataset.0.data_path=http://a:b@c", "dataset.0.data_path=d"], "--set dataset.0.data_path"),
    ],
)
def test_secret_in_what_is_changed_for_the_nodes_is_refused(overrides: list[str], place: str) -> None:
    for refused in (request(*overrides).check, lambda: plan(request(*overrides))):
        with pytest.raises(ConfigError, match="which others could read") as error:
            refused()
        (problem,) = error.value.problems
        assert problem.file == place
        assert "pass-word" not in str(problem.to_dict())


@pytest.mark.parametrize("backend", ["Local", "MPI", "SSH"])
def test_secret_on_the_command_line_of_processes_is_refused_everywhere(folder: Path, backend: str) -> None:
    (folder / "backend.yaml").write_text(BACKEND.replace("backend: Kubernetes", f"backend: {backend}"))
    with pytest.raises(ConfigError, match="holds a secret") as error:
        request("hyper_parameters.note=pass-word").check()
    assert "pass-word" not in str(error.value)


def test_secret_in_the_configuration_is_refused_with_its_line(folder: Path) -> None:
    (folder / "config.yaml").write_text(CONFIG + "hyper_parameters:\n  note: pass-word\n")
    with pytest.raises(ConfigError, match="holds a secret") as error:
        request().check()
    (problem,) = error.value.problems
    assert (problem.file, problem.line) == ("config.yaml", 10)


def test_secret_as_the_name_of_a_variable_is_refused() -> None:
    with pytest.raises(ConfigError, match="holds a secret") as error:
        request("kubernetes.env={pass-word: a}").check()
    assert [problem.key for problem in error.value.problems] == ["kubernetes.env"]
    assert "pass-word" not in str(error.value)


def test_problem_with_a_name_shows_no_secret() -> None:
    with pytest.raises(ConfigError, match="is no name of a variable") as error:
        request("kubernetes.env={'me,pass-word': a}").check()
    (problem,) = error.value.problems
    assert problem.key == "kubernetes.env.***"
    assert "pass-word" not in str(problem.to_dict())


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("dataset.0.data_path=http://there/log?sig=signed-1", "dataset.0.data_path.0"),
        ("dataset.0.validation={data_path: 'http://there/log?a=b&token=signed-1'}", None),
        ("runner.0.init_model_path=https://there/1?X-Amz-Signature=signed-1", "runner.0.init_model_path"),
        ("config.output_path=https://there/out?sig=signed-1", "config.output_path"),
        ("config.install=https://there/a.whl?token=signed-1", "config.install"),
    ],
)
def test_signature_in_an_address_is_refused(override: str, key: str | None) -> None:
    for refused in (request(override).check, lambda: plan(request(override))):
        with pytest.raises(ConfigError, match="has a signature or token in an address") as error:
            refused()
        (problem,) = error.value.problems
        assert key is None or problem.key == key
        assert "signed-1" not in str(problem.to_dict())


def test_signature_stays_where_nobody_else_reads_it(folder: Path) -> None:
    (folder / "backend.yaml").write_text("backend: MPI\n")
    assert request("dataset.0.data_path=http://there/log?sig=signed-1").check() == ()


@pytest.mark.parametrize(
    "value", ["https://me:some-word@minio:9000", "https://minio/?token=some-word", "https://minio/pass-word"]
)
def test_secret_in_a_variable_that_goes_along_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", value)
    job = request("dataset.0.data_path=s3://bucket/log")
    with pytest.raises(ConfigError, match=r"^AWS_ENDPOINT_URL: .*which others could read") as error:
        plan(job)
    assert "some-word" not in str(error.value)
    assert plan(request()).facts["job"] == "criteo-job", "where S3 is not read it stays here"
    other = request(
        "dataset.0.data_path=s3://bucket/log", "kubernetes.env={AWS_ENDPOINT_URL: 'http://other'}"
    )
    assert value not in str(plan(other).objects)


def test_user_without_a_password_may_stand_in_an_address() -> None:
    assert request("config.fs_name=hdfs://me@there:9000", ELSEWHERE).check() == ()
