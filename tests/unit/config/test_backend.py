"""backend.yaml: what is read, and what every mistake says."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from clickmill.config.backend import BackendConfig, load_backend, parse_backend
from clickmill.config.backend.known_secrets import KnownSecrets
from clickmill.config.backend.secrets import CREDENTIALS, VARIABLES, files_of_environment
from clickmill.errors import ConfigError, Problem

from .backend_examples import EXAMPLES, FULL, MPI

Find = Callable[..., dict[str | None, Problem]]

SMALL = "backend: Local\n"


@pytest.fixture(autouse=True)
def _without_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*VARIABLES.values(), *CREDENTIALS):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(f"{name}_FILE", raising=False)


@pytest.fixture
def wrong() -> Find:
    """Problems of a text, by key."""

    def find(text: str, **options: list[str]) -> dict[str | None, Problem]:
        with pytest.raises(ConfigError) as error:
            parse_backend(text, **options)
        assert error.value.problems
        return {problem.key: problem for problem in error.value.problems}

    return find


def secrets_of(backend: BackendConfig) -> tuple[str, ...]:
    """Those that it holds, whole."""
    values = (backend.config.fs_ugi, backend.submit.ak, backend.submit.sk)
    return tuple(value.get_secret_value() for value in values if value.get_secret_value())


@pytest.mark.parametrize("text", EXAMPLES.values(), ids=EXAMPLES.keys())
def test_every_example_is_accepted_unchanged(text: str) -> None:
    backend = parse_backend(text)
    assert backend.backend == "PaddleCloud"
    assert backend.submit.files == ("./*.py", "./*.yaml")
    assert backend.submit.name == "paddlerec-ctr"


def test_text_without_quotes_that_looks_like_a_number_is_as_it_is_written(tmp_path: Path) -> None:
    secret = tmp_path / "007"
    secret.write_text("me,pass-word\n")
    secret.chmod(0o600)
    text = (
        "backend: k8s\n"
        "config: {fs_name: 0x10, fs_ugi_file: 007}\n"
        "submit: {ak: 0012345678, sk: 12345e5, job_name: 007, group: 0010, k8s_trainers: 02}\n"
        "kubernetes:\n"
        "  env: {VERSION: 1.10, ID: 0012, RATE: 1e3}\n"
        "  node_selector: {zone: 1.0}\n"
        "  tolerations: [{key: a, value: 010}]\n"
    )
    backend = parse_backend(text, file=str(tmp_path / "backend.yaml"))
    assert secrets_of(backend) == ("me,pass-word", "0012345678", "12345e5")
    assert (backend.config.fs_name, backend.submit.job_name, backend.submit.group) == ("0x10", "007", "0010")
    assert backend.submit.k8s_trainers == 2
    pods = backend.kubernetes
    assert pods.env == {"VERSION": "1.10", "ID": "0012", "RATE": "1e3"}
    assert (pods.node_selector, pods.tolerations[0].value) == ({"zone": "1.0"}, "010")


def test_secret_that_looks_like_a_number_is_not_repeated(wrong: Find) -> None:
    problems = wrong("backend: Local\nsubmit: {ak: 0012345678, job_name: /0012345678}\n")
    assert "***" in problems["submit.job_name"].message
    assert "12345678" not in str(problems["submit.job_name"])


def test_examples_mean_what_they_say() -> None:
    backend = parse_backend(FULL)
    submit, communicator = backend.submit, backend.config.communicator
    assert (submit.nodes, submit.k8s_trainers, submit.k8s_cpu_cores) == (2, 2, 4)
    assert (submit.k8s_ps_num, submit.k8s_ps_cores, submit.k8s_gpu_card) == (2, 4, 1)
    assert (communicator.send_queue_size, communicator.thread_pool_size) == (5, 32)
    assert communicator.is_sgd_optimizer is False
    assert backend.config.use_python3 is True
    assert parse_backend(MPI).config.fs_ugi.get_secret_value() == "usr,pwd"


def test_defaults_are_those_of_the_original() -> None:
    backend = parse_backend(SMALL)
    submit = backend.submit
    assert (submit.priority, submit.job_name, submit.group) == ("high", "PaddleRecClusterJob", "paddle")
    assert submit.start_cmd == "python -m paddlerec.run -m config.yaml"
    assert (submit.nodes, submit.k8s_trainers, submit.k8s_ps_num, submit.k8s_ps_cores) == (1, 1, 1, 2)
    assert (submit.cpu_cores(is_collective=True), submit.cpu_cores(is_collective=False)) == (1, 2)
    assert submit.k8s_gpu_card == 1
    assert backend.config.paddle_version == "1.7.2"


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("local", "Local"),
        ("PADDLECLOUD", "PaddleCloud"),
        ("kubernetes", "Kubernetes"),
        ("K8S", "Kubernetes"),
        ("ssh", "SSH"),
        ("Mpi", "MPI"),
    ],
)
def test_backend_is_read_in_any_case(written: str, name: str) -> None:
    assert parse_backend(f"backend: {written}\ncluster_type: K8S\n").backend == name


@pytest.mark.parametrize(("written", "name"), [("MPI", "mpi"), ("K8s", "k8s"), ("k8s", "k8s")])
def test_cluster_type_is_read_in_any_case(written: str, name: str) -> None:
    assert parse_backend(f"backend: paddlecloud\ncluster_type: {written}\n").cluster_type == name


def test_key_without_a_value_counts_as_not_written() -> None:
    backend = parse_backend("backend: Local\nconfig:\n  fs_name:\nsubmit:\n  files:\n  nodes:\n")
    assert (backend.config.fs_name, backend.submit.files, backend.submit.nodes) == ("", (), 1)


# Two spellings of a key


@pytest.mark.parametrize("key", ["k8s_cpu_cores", "k8s-cpu-cores"])
def test_both_spellings_are_read(key: str) -> None:
    assert parse_backend(f"{SMALL}submit: {{{key}: 4}}\n").submit.k8s_cpu_cores == 4


def test_key_that_is_written_twice_warns_with_both_lines() -> None:
    backend = parse_backend(FULL)
    assert [(note.key, note.line) for note in backend.notes] == [
        ("submit.k8s_trainers", 40),
        ("submit.k8s-cpu-cores", 41),
    ]
    assert "in line 36 and in line 40; the last one wins" in backend.notes[0].message


@pytest.mark.parametrize(
    ("lines", "value", "pair"),
    [
        (("k8s_cpu_cores: 1", "k8s-cpu-cores: 2"), 2, (3, 4)),
        (("k8s-cpu-cores: 1", "k8s_cpu_cores: 2"), 2, (3, 4)),
        (("k8s_cpu_cores: 1", "k8s-cpu-cores: 2", "k8s_cpu_cores: 3"), 3, (4, 5)),
    ],
)
def test_of_two_spellings_the_last_line_wins(
    lines: tuple[str, ...], value: int, pair: tuple[int, int]
) -> None:
    backend = parse_backend("\n".join(["backend: Local", "submit:", *(f"  {line}" for line in lines)]))
    assert backend.submit.k8s_cpu_cores == value
    words = backend.notes[-1].message
    assert f"in line {pair[0]};" in words
    assert f"line {pair[1]}" in words


def test_names_of_a_communicator_knob_are_one_key() -> None:
    text = f"""{SMALL}config:
  communicator:
    FLAGS_communicator_max_send_grad_num_before_recv: 2
    FLAGS_communicator_min_send_grad_num_before_recv: 3
"""
    backend = parse_backend(text)
    assert backend.config.communicator.max_send_grad_num_before_recv == 3
    assert "in line 4;" in backend.notes[0].message


def test_wrong_knob_is_told_with_its_own_line_key_and_value(wrong: Find) -> None:
    text = f"""{SMALL}config:
  communicator:
    FLAGS_communicator_is_sgd_optimizer: 7
    FLAGS_communicator_send_queue_size: -1
    FLAGS_rpc_retry_times: a
    FLAGS_xyz: 3
    FLAGS_communicator_fake_rpk: 3
"""
    found = {(each.line, each.key, each.value) for each in wrong(text).values()}
    assert found == {
        (4, "config.communicator.FLAGS_communicator_is_sgd_optimizer", "`7`"),
        (5, "config.communicator.FLAGS_communicator_send_queue_size", "`-1`"),
        (6, "config.communicator.FLAGS_rpc_retry_times", "`a`"),
        (7, "config.communicator.FLAGS_xyz", None),
        (8, "config.communicator.FLAGS_communicator_fake_rpk", None),
    }
    assert wrong(text)["config.communicator.FLAGS_communicator_fake_rpk"].suggestion == "fake_rpc"


def test_what_is_found_later_has_the_line_of_either_spelling() -> None:
    backend = parse_backend(f"{SMALL}submit:\n  nodes: 1\n  k8s-gpu-card: 2\n")
    found = backend.problem("is odd", ("submit", "k8s_gpu_card"))
    assert (found.line, found.key) == (4, "submit.k8s-gpu-card")
    assert backend.has_place(("submit", "k8s_gpu_card"))
    absent = backend.problem("is odd", ("kubernetes", "context"))
    assert (absent.line, absent.key) == (1, "kubernetes.context")
    assert not backend.has_place(("kubernetes", "context"))


def test_free_keys_keep_their_spelling() -> None:
    text = f"{SMALL}kubernetes: {{node_selector: {{a-b: x, a_b: y}}, env: {{A: 1}}}}\n"
    kubernetes = parse_backend(text).kubernetes
    assert kubernetes.node_selector == {"a-b": "x", "a_b": "y"}
    assert kubernetes.env == {"A": "1"}


@pytest.mark.parametrize("path", ["submit.k8s_cpu_cores", "submit.k8s-cpu-cores"])
@pytest.mark.parametrize("key", ["k8s_cpu_cores", "k8s-cpu-cores"])
def test_override_replaces_either_spelling(path: str, key: str) -> None:
    backend = parse_backend(f"{SMALL}submit: {{{key}: 4}}\n", overrides=[f"{path}=8"])
    assert backend.submit.k8s_cpu_cores == 8


# Mistakes


def test_unknown_key_names_line_column_and_the_nearest_key(wrong: Find) -> None:
    found = wrong("backend: Local\nsubmit:\n  k8s_trainer: 2\n")["submit.k8s_trainer"]
    assert str(found) == ("backend.yaml:3:3: `submit.k8s_trainer`: unknown key; did you mean `k8s_trainers`?")


def test_all_problems_are_reported_at_once(wrong: Find) -> None:
    text = """\
backend: PadleCloud
cluster_type: yarn
config: {use_python3: maybe, communicator: {send_queue_size: 0}}
submit: {priority: highest, nodes: none, job_name: "a b", k8s_ps_num: 0}
kubernetes: {port: 65535, volumes: [{name: data, mount: /data}], output: {claim: a, host_path: /b}}
"""
    found = wrong(text)
    assert set(found) == {
        "backend", "cluster_type", "config.use_python3", "config.communicator.send_queue_size",
        "submit.priority", "submit.nodes", "submit.job_name", "submit.k8s_ps_num",
        "kubernetes.port", "kubernetes.volumes.0", "kubernetes.output",
    }  # fmt: skip
    assert found["backend"].suggestion == "PaddleCloud"
    assert all(problem.line for problem in found.values())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("- a\n", "not a list"),
        ("submit: {}\n", "required key is missing; add `backend`, one of `Local`, `PaddleCloud`"),
        ("backend: Local\nsubmit: {nods: }\n", "unknown key"),
        ("backend: Local\nsubmit: 3\n", "mapping"),
        ("backend: [Local]\n", "must be one of .*`MPI`$"),
        ("backend: Local\nsubmit:\n\tnodes: 2\n", "not valid YAML"),
        ('backend: Local\nconfig: {output_path: "a\\nb"}\n', "one line"),
        ('backend: Local\nsubmit: {ak: "a\\nb"}\n', "one line"),
        ("backend: Local\nkubernetes: {resources: {trainer: {memory: much}}}\n", "quantity"),
    ],
)
def test_wrong_text_says_what_is_wrong(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse_backend(text)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*backend\.yaml`: No such file"):
        load_backend(tmp_path / "backend.yaml")


def test_folder_stands_for_its_backend_yaml(tmp_path: Path) -> None:
    (tmp_path / "backend.yaml").write_text(SMALL)
    assert load_backend(tmp_path).backend == "Local"


# Names of jobs


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("PaddleRec_CTR", "paddlerec-ctr"),
        ("a.b--c_", "a-b-c"),
        ("2026", "job-2026"),
    ],
)
def test_name_of_a_job_becomes_a_dns_label(name: str, label: str) -> None:
    assert parse_backend(SMALL, overrides=[f"submit.job_name='{name}'"]).submit.name == label


@pytest.mark.parametrize("name", ["", "a/b", "-rf", "$(id)", "a b", "名"])
def test_name_that_a_shell_or_folder_could_mistake_is_refused(name: str, wrong: Find) -> None:
    assert "submit.job_name" in wrong(f'{SMALL}submit: {{job_name: "{name}"}}\n')


# Secrets

SECRET = "backend: PaddleCloud\nconfig: {fs_ugi: 'me,pass-word'}\nsubmit: {ak: key-id, sk: key-secret}\n"


def test_secrets_are_not_shown() -> None:
    backend = parse_backend(SECRET)
    shown = f"{backend!r} {backend} {backend.model_dump()} {backend.model_dump_json()}"
    assert not any(secret in shown for secret in ("pass-word", "key-id", "key-secret"))
    assert set(secrets_of(backend)) == {"me,pass-word", "key-id", "key-secret"}


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('submit: {ak: "key-id\\nsecond"}', "submit.ak"),
        ("submit: {ak: true, sk: [key-id]}", "submit.sk"),
        ("config: {fs_ugi: {key-id: key-id}}", "config.fs_ugi"),
        ("submit:\n  ak:key-id\n  sk:key-id", "submit"),
        ("config: fs_ugi=key-id", "config"),
        ("kubernetes: {env: TOKEN=key-id}", "kubernetes.env"),
        ("submit: {ak:key-id, nodes: 2}", "submit.ak..."),
        ("submit: {sk=key-id: }", "submit.sk..."),
    ],
)
def test_secret_that_is_written_wrongly_is_not_repeated(text: str, key: str, wrong: Find) -> None:
    found = wrong(f"{SMALL}{text}\n")
    assert key in found
    assert "key-id" not in str([problem.to_dict() for problem in found.values()])


def test_key_that_lacks_a_space_is_told_with_the_key_that_is_meant(wrong: Find) -> None:
    found = wrong(f"{SMALL}submit: {{ak:key-id}}\n")["submit.ak..."]
    assert (found.line, found.suggestion) == (2, "ak")


def test_environment_counts_more_than_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"FS_NAME": "hdfs://there", "FS_UGI": "you,other", "AK": "other-id", "SK": "other-secret"}
    for name, value in values.items():
        monkeypatch.setenv(f"CLICKMILL_{name}", f" {value}\n")
    for text in (SECRET, "backend: PaddleCloud\n"):
        backend = parse_backend(text)
        assert backend.config.fs_name == "hdfs://there"
        assert set(secrets_of(backend)) == {"you,other", "other-id", "other-secret"}


def test_secret_is_read_from_a_file_beside_backend_yaml(tmp_path: Path) -> None:
    (tmp_path / "sk").write_text("key-secret\n")
    (tmp_path / "sk").chmod(0o600)
    (tmp_path / "backend.yaml").write_text("backend: PaddleCloud\nsubmit: {sk_file: sk}\n")
    backend = load_backend(tmp_path / "backend.yaml")
    assert secrets_of(backend) == ("key-secret",)
    assert backend.secret_files == ("sk",)
    assert backend.notes == ()


def test_file_of_a_secret_may_be_named_with_either_spelling(tmp_path: Path) -> None:
    (tmp_path / "it").write_text("me,pass-word\n")
    (tmp_path / "it").chmod(0o644)
    file = tmp_path / "backend.yaml"
    file.write_text("backend: PaddleCloud\nconfig: {fs-name: a,\n  fs-ugi-file: it}\n")
    backend = load_backend(file)
    assert secrets_of(backend) == ("me,pass-word",)
    assert [(note.key, note.line) for note in backend.notes] == [("config.fs_ugi_file", 3)]
    file.write_text("backend: PaddleCloud\nconfig: {fs-ugi: 'me,pass-word'}\n")
    file.chmod(0o644)
    assert [(note.key, note.line) for note in load_backend(file).notes] == [("config.fs_ugi", 2)]
    assert load_backend(file, ["config={fs-ugi-file: it}"]).notes[0].file == "--set config"


def test_secret_that_others_can_read_is_warned_of(tmp_path: Path) -> None:
    (tmp_path / "sk").write_text("key-secret\n")
    (tmp_path / "sk").chmod(0o644)
    file = tmp_path / "backend.yaml"
    file.write_text("backend: PaddleCloud\nsubmit: {sk_file: sk, ak: key-id}\n")
    file.chmod(0o640)
    notes = {note.key: note for note in load_backend(file).notes}
    assert set(notes) == {"submit.sk_file", "submit.ak"}
    assert f"chmod 600 {tmp_path / 'sk'}" in notes["submit.sk_file"].message
    assert "CLICKMILL_AK" in notes["submit.ak"].message
    assert not any("key-id" in str(note) for note in notes.values())
    file.chmod(0o600)
    (tmp_path / "sk").chmod(0o600)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert load_backend(file).notes == ()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file"),
        (b"\n", "holds nothing"),
        (b"\xff", "not UTF-8"),
        (b"x" * 70_000, "more than 65536"),
        (b"a\nb", "several lines"),
    ],
)
def test_file_of_a_secret_that_cannot_be_used_is_named(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    if content is not None:
        (tmp_path / "sk").write_bytes(content)
    (tmp_path / "backend.yaml").write_text("backend: PaddleCloud\nsubmit: {sk_file: sk}\n")
    with pytest.raises(ConfigError, match=words) as error:
        load_backend(tmp_path / "backend.yaml")
    assert error.value.problems[0].key == "submit.sk_file"
    assert error.value.problems[0].line == 2


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("no-such", "cannot be read: No such file"),
        ("/dev/zero", "is no regular file"),
        ("empty", "holds nothing"),
        ("long", "has more than 65536 bytes"),
        ("lines", "has several lines"),
    ],
)
def test_file_of_a_variable_that_cannot_be_used_is_named_with_it(
    in_folder: Path, monkeypatch: pytest.MonkeyPatch, wrong: Find, named: str, words: str
) -> None:
    (in_folder / "empty").touch()
    (in_folder / "long").write_text("x" * 70_000)
    (in_folder / "lines").write_text("key\nid\n")
    monkeypatch.setenv("CLICKMILL_AK_FILE", named)
    (found,) = wrong(SECRET).values()
    assert (found.file, found.key) == ("CLICKMILL_AK_FILE", "submit.ak")
    assert found.message.startswith(f"names `{named}`, which {words}")


@pytest.mark.parametrize("variable", ["CLICKMILL_AK", "CLICKMILL_FS_UGI", "AWS_SESSION_TOKEN"])
def test_file_of_a_variable_that_others_can_read_is_warned_of(
    in_folder: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    (in_folder / "it").write_text("key-id\n")
    (in_folder / "it").chmod(0o644)
    monkeypatch.setenv(f"{variable}_FILE", "it")
    (note,) = parse_backend(SMALL).notes
    assert note.file == f"{variable}_FILE"
    assert note.message == "names `it`, which others can read; mend it with `chmod 600 it`"
    monkeypatch.setenv(variable, "key-id")
    assert parse_backend(SMALL).notes == (), "the file is not read"
    monkeypatch.delenv(variable)
    (in_folder / "it").chmod(0o600)
    assert parse_backend(SMALL).notes == ()


def test_secret_that_is_given_twice_is_refused(wrong: Find) -> None:
    found = wrong("backend: PaddleCloud\nsubmit: {sk: key-secret, sk_file: sk}\n")["submit.sk_file"]
    assert "leave one of them out" in found.message


@pytest.mark.parametrize(
    ("override", "place"),
    [
        ("submit.sk=hunter2", "--set submit.sk"),
        ("submit.ak=hunter2", "--set submit.ak"),
        ("config.fs_ugi=hunter2", "--set config.fs_ugi"),
        (" config . fs-ugi =hunter2", "--set config.fs_ugi"),
        ("submit.sk=[hunter2", "--set submit.sk"),
        ("config.fs_ugi.x=hunter2", "--set config.fs_ugi"),
        ("config.fs_ugi.hunter2=x", "--set config.fs_ugi"),
        ("config={fs_name: a, fs_ugi: 'me,hunter2'}", "--set config"),
        ("config={fs-ugi: hunter2, bogus: 1}", "--set config"),
        ("submit={ak: hunter2, files: './*', k8s_trainers: x}", "--set submit"),
        ("submit={<<: {sk: hunter2}}", "--set submit"),
        ("submit=sk: hunter2", "--set submit"),
    ],
)
def test_secret_on_the_command_line_is_refused_and_not_repeated(override: str, place: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_backend(SMALL, overrides=[override])
    (problem,) = error.value.problems
    assert problem.file == place
    assert "can be read by everybody" in problem.message
    assert "hunter2" not in str(problem.to_dict())


@pytest.mark.parametrize(
    "override", ['submit={"ak": hunter2', "submit=ak:hunter2", "config=[fs_ugi: hunter2]"]
)
def test_override_that_means_nothing_is_not_repeated(override: str, wrong: Find) -> None:
    problems = wrong(SMALL, overrides=[override]).values()
    assert "hunter2" not in str([problem.to_dict() for problem in problems])


def test_sections_without_secrets_are_taken_from_the_command_line() -> None:
    overrides = ["submit={nodes: 3, sk_file: ''}", "config={fs_name: hdfs://there}"]
    backend = parse_backend(SMALL, overrides=overrides)
    assert (backend.submit.nodes, backend.config.fs_name) == (3, "hdfs://there")


def test_sections_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        parse_backend(SMALL).submit.nodes = 3  # type: ignore[misc]


def test_shown_backend_parses_to_itself() -> None:
    shown = parse_backend(f"{SMALL}submit: {{nodes: 3}}\n").model_dump(mode="json")
    for section, key in (("config", "fs_ugi"), ("submit", "ak"), ("submit", "sk")):
        del shown[section][key]
    assert BackendConfig.model_validate(shown).submit.nodes == 3


# Files and variables that cannot be read


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("absent.yaml", "cannot read `absent.yaml`: No such file"),
        ("folder", "folder `folder` has no backend.yaml"),
        ("pipe", "cannot read `pipe`: is a pipe that nobody writes to"),
        ("x" * 300, "File name too long"),
        ("/dev/zero", "has more than"),
    ],
)
def test_backend_that_is_not_there_is_told_with_what_to_name(in_folder: Path, name: str, words: str) -> None:
    (in_folder / "folder").mkdir()
    os.mkfifo(in_folder / "pipe")
    with pytest.raises(ConfigError, match=words) as error:
        load_backend(name)
    assert "docs/guides/submitting.md" in (error.value.hint or "")


def test_home_of_nobody_is_told_with_the_key_that_names_it(
    wrong: Find, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = wrong(f"{SMALL}submit:\n  ak_file: ~no-such-user/x\n")["submit.ak_file"]
    assert (found.line, found.value) == (3, "~no-such-user/x")
    monkeypatch.setenv("CLICKMILL_AK_FILE", "~no-such-user/x")
    assert wrong(SMALL)["submit.ak"].file == "CLICKMILL_AK_FILE"


def test_file_of_a_credential_that_nobody_asks_for_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLICKMILL_HTTP_TOKEN_FILE", "~no-such-user/x")
    backend = parse_backend(SMALL)
    assert backend.notes == ()
    assert not any(value for _, value in KnownSecrets.of(backend).values)
    assert files_of_environment() == set()


def test_credential_that_is_no_text_is_told_with_its_variable(
    wrong: Find, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", os.fsdecode(b"\xff\xfehunter2"))
    (found,) = wrong(SMALL).values()
    assert found.file == "AWS_SECRET_ACCESS_KEY"
    assert "hunter2" not in str(found.to_dict())


def test_halves_of_characters_are_looked_for_like_any_secret() -> None:
    known = KnownSecrets().with_values("it", ["\ud800hunter2"])
    assert known.find("a\ud800hunter2".encode(errors="surrogatepass")) == (1, "it")


# Arguments


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("--a b", ("--a", "b")),
        ("'--x \"a b\"'", ("--x", "a b")),
        ("['a b', '\"']", ("a b", '"')),
    ],
)
def test_arguments_in_one_text_are_split_as_a_shell_does(text: str, arguments: tuple[str, ...]) -> None:
    assert parse_backend(f"{SMALL}mpi: {{arguments: {text}}}\n").mpi.arguments == arguments


def test_quote_that_does_not_end_is_refused(wrong: Find) -> None:
    found = wrong(f"{SMALL}mpi:\n  arguments: '--x \"a b'\n")["mpi.arguments"]
    assert (found.line, found.message) == (3, "has a quote that does not end")
