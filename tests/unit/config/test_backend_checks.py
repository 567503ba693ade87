"""What config.yaml and backend.yaml must agree on: each check has its own words, key, line and remedy."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from clickmill.config import parse_config
from clickmill.config.backend import parse_backend
from clickmill.config.backend.checks import submit_notes, submit_problems
from clickmill.config.backend.secrets import VARIABLES
from clickmill.errors import ConfigError, Problem

from . import backend_examples, examples

GIVEN = [
    "config.fs_name=hdfs://there",
    "config.train_data_path=/data",
    "config.output_path=/out",
    "submit.group=mine",
]
Check = Callable[..., dict[str | None, Problem]]


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES.values():
        monkeypatch.delenv(name, raising=False)
    for name in ("AK", "SK", "FS_UGI"):
        monkeypatch.setenv(f"CLICKMILL_{name}", "given")


@pytest.fixture
def check() -> Check:
    """Problems of a job by key; `config` and `backend` are overrides."""

    def find(
        text: str, backend_text: str, config: tuple[str, ...] = (), backend: tuple[str, ...] = ()
    ) -> dict[str | None, Problem]:
        problems = submit_problems(
            parse_config(text, overrides=config), parse_backend(backend_text, overrides=[*GIVEN, *backend])
        )
        return {problem.key: problem for problem in problems}

    return find


JOBS = {
    "mpi": (examples.MPI, backend_examples.MPI),
    "collective": (examples.COLLECTIVE, backend_examples.COLLECTIVE),
    "ps_cpu": (examples.MPI, backend_examples.PS_CPU),
    "full": (examples.CLUSTER, backend_examples.FULL),
}


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS.keys())
def test_examples_can_be_submitted_once_their_blanks_are_filled(check: Check, job: tuple[str, str]) -> None:
    assert check(*job) == {}


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS.keys())
def test_blanks_of_the_examples_are_errors(monkeypatch: pytest.MonkeyPatch, job: tuple[str, str]) -> None:
    for name in VARIABLES.values():
        monkeypatch.delenv(name, raising=False)
    problems = submit_problems(parse_config(job[0]), parse_backend(job[1]))
    found = {problem.key for problem in problems}
    is_mpi = "cluster_type: mpi" in job[1]
    assert found == {"submit.ak", "submit.sk", *(["config.train_data_path"] if is_mpi else [])}


@pytest.mark.parametrize(
    ("key", "remedy"),
    [
        ("config.fs_name", "CLICKMILL_FS_NAME"),
        ("config.fs_ugi", "CLICKMILL_FS_UGI"),
        ("submit.ak", "CLICKMILL_AK"),
        ("submit.sk", "submit.sk_file"),
        ("submit.files", "./*.py ./*.yaml"),
        ("config.train_data_path", "./train_data"),
    ],
)
def test_empty_value_that_a_job_needs_is_an_error_with_its_line(
    monkeypatch: pytest.MonkeyPatch, key: str, remedy: str
) -> None:
    if key in {"config.fs_ugi", "submit.ak", "submit.sk"}:
        monkeypatch.delenv(f"CLICKMILL_{key.partition('.')[2].upper()}")
    text = backend_examples.MPI.replace("usr,pwd", "").replace("./*.py ./*.yaml", '""')
    given = [text for text in GIVEN if not text.startswith(f"{key}=")]
    if key == "config.fs_name":
        text = text.replace("afs://xxx.com", "")
    if key != "submit.files":
        given.append("submit.files='*.py'")
    problems = submit_problems(parse_config(examples.MPI), parse_backend(text, overrides=given))
    (problem,) = problems
    line = next(
        n for n, line in enumerate(text.splitlines(), 1) if line.strip().startswith(key.split(".")[1])
    )
    assert (problem.key, problem.file, problem.line) == (key, "backend.yaml", line)
    assert remedy in problem.message


def test_paddlecloud_needs_a_cluster_type(check: Check) -> None:
    text = backend_examples.MPI.replace("cluster_type: mpi # k8s\n", "")
    assert "`mpi` and `k8s`" in check(examples.MPI, text)["cluster_type"].message


@pytest.mark.parametrize(
    ("text", "backend", "config", "key", "words"),
    [
        (examples.COLLECTIVE, backend_examples.MPI, (), "runner.0.device", "have no cards"),
        (examples.COLLECTIVE, backend_examples.MPI, (), "runner.0.fleet_mode", "parameter servers"),
        (
            examples.COLLECTIVE, backend_examples.COLLECTIVE, ("runner.0.device=cpu",),
            "runner.0.device", "trains collectively on CPUs too",
        ),
        (
            examples.MPI, backend_examples.PS_CPU, ("runner.0.class=local_cluster_train",),
            "runner.0.class", "use `cluster_train`",
        ),
        (examples.SINGLE, backend_examples.PS_CPU, (), "runner.0.class", "on every node by itself"),
        (
            examples.SINGLE, backend_examples.COLLECTIVE, ("runner.0.device=gpu",),
            "runner.0.class", "`submit.k8s_trainers` is 2",
        ),
        (
            examples.SINGLE, backend_examples.PS_CPU,
            ("runner.0.class=infer", "runner.0.init_model_path=x"), "runner.0.class", "`clickmill infer`",
        ),
    ],
)  # fmt: skip
def test_runner_that_does_not_fit_paddlecloud_is_an_error_in_config_yaml(
    check: Check, text: str, backend: str, config: tuple[str, ...], key: str, words: str
) -> None:
    found = check(text, backend, config)
    assert words in found[key].message


def test_problem_of_a_runner_names_its_line(check: Check) -> None:
    found = check(examples.COLLECTIVE, backend_examples.MPI)["runner.0.device"]
    line = examples.COLLECTIVE.splitlines().index("  device: gpu") + 1
    assert (found.file, found.line) == ("config.yaml", line)


def test_ps_with_cards_is_refused_by_config_yaml_itself() -> None:
    with pytest.raises(ConfigError, match="use `device: cpu`, or `fleet_mode: collective`"):
        parse_config(examples.MPI, overrides=["runner.0.device=gpu"])


def test_one_card_trains_as_a_single_process(check: Check) -> None:
    found = check(
        examples.SINGLE,
        backend_examples.COLLECTIVE,
        ("runner.0.device=gpu",),
        ("submit.k8s_trainers=1",),
    )
    assert found == {}


@pytest.mark.parametrize("name", ["Local", "MPI", "SSH", "Kubernetes"])
def test_collective_on_cpus_is_fine_everywhere_else(check: Check, name: str) -> None:
    backend = f"backend: {name}\nkubernetes: {{image: here}}\n"
    assert check(examples.COLLECTIVE, backend, ("runner.0.device=cpu",)) == {}


@pytest.mark.parametrize("name", ["Local", "MPI", "SSH", "Kubernetes", "PaddleCloud"])
def test_infer_is_refused_everywhere(check: Check, name: str) -> None:
    config = ("runner.0.class=infer", "runner.0.init_model_path=x")
    found = check(examples.MPI, f"backend: {name}\n", config)["runner.0.class"]
    assert "runs in one process and is not submitted" in found.message


def test_job_is_one_runner(check: Check, small: str) -> None:
    text = small.replace("mode: train", "mode: [train, other]").replace(
        "  class: train\n", "  class: train\n- {name: other, class: train}\n"
    )
    assert "--set mode=train" in check(text, "backend: Local\n")["mode"].message


def test_cluster_trains_one_phase(check: Check) -> None:
    text = examples.MPI.replace("  phases: [phase1]\n", "") + (
        "- {name: phase2, model: dnn, dataset_name: dataloader_train}\n"
    )
    with pytest.raises(ConfigError, match="a cluster trains one phase, not 2"):
        parse_config(text)
    found = check(text.replace("class: cluster_train", "class: train"), backend_examples.PS_CPU)
    assert set(found) == {"runner.0.class"}


def test_kubernetes_needs_an_image(check: Check) -> None:
    assert "deploy/docker" in check(examples.MPI, "backend: Kubernetes\n")["kubernetes.image"].message


def test_runner_with_cards_needs_one(check: Check) -> None:
    found = check(examples.COLLECTIVE, backend_examples.COLLECTIVE, backend=("submit.k8s_gpu_card=0",))
    assert set(found) == {"submit.k8s_gpu_card"}
    assert "use `device: cpu`" in found["submit.k8s_gpu_card"].message
    kubernetes = "backend: Kubernetes\nkubernetes: {image: here}\n"
    assert set(check(examples.COLLECTIVE, kubernetes, backend=("submit.k8s_gpu_card=0",))) == set(found)
    cpu = ("runner.0.device=cpu",)
    assert check(examples.COLLECTIVE, kubernetes, config=cpu, backend=("submit.k8s_gpu_card=0",)) == {}


@pytest.mark.parametrize(("name", "is_fine"), [("x" * 40, True), ("x" * 41, False), ("2" * 37, False)])
def test_name_that_would_have_to_be_cut_on_kubernetes_is_refused(
    check: Check, name: str, is_fine: bool
) -> None:
    kubernetes = "backend: Kubernetes\nkubernetes: {image: here}\n"
    found = check(examples.MPI, kubernetes, backend=(f"submit.job_name='{name}'",))
    assert set(found) == (set() if is_fine else {"submit.job_name"})


def test_blanks_of_the_examples_may_be_filled_by_the_environment_alone(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLICKMILL_FS_NAME", "afs://here")
    monkeypatch.setenv("CLICKMILL_TRAIN_DATA_PATH", "/user/me/train")
    for config, backend in JOBS.values():
        assert submit_problems(parse_config(config), parse_backend(backend)) == []


# Warnings


def notes(text: str, backend: str, *overrides: str) -> dict[str | None, str]:
    found = submit_notes(parse_config(text), parse_backend(backend, overrides=overrides))
    return {note.key: note.message for note in found}


def test_blanks_that_a_job_can_do_without_are_warnings() -> None:
    assert set(notes(examples.MPI, backend_examples.MPI)) == {
        "config.install",
        "config.output_path",
        "config.test_data_path",
        "config.thirdparty_path",
        "submit.group",
    }
    found = notes(examples.COLLECTIVE, backend_examples.COLLECTIVE)
    assert set(found) == {
        "config.install",
        "config.output_path",
        "config.afs_remote_mount_point",
        "submit.group",
    }
    assert "`./afs`" in found["config.afs_remote_mount_point"]


def test_python_2_and_a_lonely_card_are_worth_a_word() -> None:
    text = backend_examples.FULL.replace("use_python3: 1", "use_python3: 0")
    assert "Python 3 is asked for" in notes(examples.MPI, text)["config.use_python3"]
    found = notes(examples.COLLECTIVE, backend_examples.COLLECTIVE, "submit.k8s_trainers=1")
    assert "`class: train`" in found["runner.0.class"]


@pytest.mark.parametrize(
    ("backend", "sizes", "keys"),
    [
        ("Local", "nodes: 2", {"submit.nodes"}),
        ("Local", "nodes: 2, k8s_ps_num: 2", set()),
        ("Local\ncluster_type: mpi", "nodes: 2", set()),
        ("Local\ncluster_type: mpi", "k8s_trainers: 2", {"submit.k8s_trainers"}),
        ("Kubernetes", "nodes: 2", {"submit.nodes"}),
        ("Kubernetes", "nodes: 2, k8s_trainers: 2", set()),
        ("MPI", "k8s_trainers: 2, k8s_ps_num: 1", {"submit.k8s_trainers", "submit.k8s_ps_num"}),
        ("MPI", "nodes: 2, k8s_trainers: 2", set()),
        ("SSH", "nodes: 2", {"submit.nodes"}),
    ],
)
def test_numbers_that_are_for_another_backend_are_warned_of(backend: str, sizes: str, keys: set[str]) -> None:
    assert set(notes(examples.MPI, f"backend: {backend}\nsubmit: {{{sizes}}}\n")) == keys


@pytest.mark.parametrize("name", ["Local", "MPI", "SSH", "Kubernetes"])
def test_other_backends_warn_of_keys_without_effect(name: str) -> None:
    assert notes(examples.MPI, f"backend: {name}\n") == {}
    text = f"backend: {name}\nconfig: {{output_path: /out, train_data_path: /data, fs_name: here}}\n"
    idle = set() if name == "Kubernetes" else {"config.output_path", "config.train_data_path"}
    assert set(notes(examples.MPI, text)) == idle


@pytest.mark.parametrize(
    ("config", "settings", "keys"),
    [
        (examples.MPI, "resources: {worker: {memory: 1Gi}}", {"kubernetes.resources.worker"}),
        (examples.MPI, "resources: {pserver: {memory: 1Gi}, trainer: {memory: 1Gi}}", set()),
        (
            examples.COLLECTIVE,
            "resources: {pserver: {memory: 1Gi}, worker: {memory: 1Gi}}",
            {"kubernetes.resources.pserver"},
        ),
        (examples.MPI, "scheduler: default, queue: mine", {"kubernetes.queue"}),
        (examples.MPI, "queue: mine", set()),
    ],
)
def test_keys_of_pods_that_a_job_does_not_have_are_warned_of(
    config: str, settings: str, keys: set[str]
) -> None:
    assert set(notes(config, f"backend: Kubernetes\nkubernetes: {{image: here, {settings}}}\n")) == keys
