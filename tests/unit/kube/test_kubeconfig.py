from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from clickmill.errors import ConfigError
from clickmill.kube.kubeconfig import find_account


def _write(path: Path, **changes: Any) -> Path:
    content = {
        "current-context": "one",
        "clusters": [{"name": "c", "cluster": {"server": "https://c", "certificate-authority": "ca.crt"}}],
        "contexts": [
            {"name": "one", "context": {"cluster": "c", "user": "u", "namespace": "team"}},
            {"name": "two", "context": {"cluster": "c"}},
        ],
        "users": [{"name": "u", "user": {"token": "t"}}],
        **changes,
    }
    path.write_text(yaml.safe_dump(content))
    return path


def test_the_current_context_counts_unless_another_is_named(tmp_path: Path) -> None:
    environ = {"KUBECONFIG": str(_write(tmp_path / "config"))}
    account = find_account(environ=environ)
    assert (account.config.context_name, account.config.namespace) == ("one", "team")
    assert find_account("two", environ).config.namespace == "default"


def test_files_are_found_beside_the_kubeconfig_that_names_them(tmp_path: Path) -> None:
    account = find_account(environ={"KUBECONFIG": str(_write(tmp_path / "config"))})
    assert account.config.cluster.certificate_auth == str(tmp_path / "ca.crt")


def test_of_several_files_the_first_that_says_it_counts(tmp_path: Path) -> None:
    first = _write(
        tmp_path / "first",
        clusters=[{"name": "d", "cluster": {"server": "https://d"}}],
        contexts=[{"name": "three", "context": {"cluster": "d", "user": "u"}}],
        users=None,
    )
    first.write_text(first.read_text().replace("current-context: one", "current-context: three"))
    second = _write(tmp_path / "second")
    account = find_account(environ={"KUBECONFIG": f"{first}:{tmp_path / 'absent'}:{second}"})
    assert (account.config.context_name, account.config.cluster.server) == ("three", "https://d")
    assert account.config.user is not None
    assert account.config.user.token == "t"


def test_a_plugin_of_the_newest_version_is_called_with_what_it_expects(tmp_path: Path) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "login", "env": None}
    path = _write(tmp_path / "config", users=[{"name": "u", "user": {"exec": plugin}}])
    user = find_account(environ={"KUBECONFIG": str(path)}).config.user
    assert user is not None
    assert user.exec is not None
    assert user.exec.apiVersion == "client.authentication.k8s.io/v1beta1"
    (variable,) = user.exec.env or []
    assert json.loads(variable.value)["apiVersion"] == "client.authentication.k8s.io/v1"


@pytest.mark.parametrize(
    ("context", "changes", "words"),
    [
        ("three", {}, "there is no context `three`"),
        ("", {"current-context": ""}, "names no current context; known contexts: `one`, `two`"),
        ("", {"clusters": []}, "context `one` names `c`, which is not among the clusters"),
        ("", {"users": []}, "context `one` names `u`, which is not among the users"),
    ],
)
def test_what_does_not_fit_is_named(
    tmp_path: Path, context: str, changes: dict[str, Any], words: str
) -> None:
    environ = {"KUBECONFIG": str(_write(tmp_path / "config", **changes))}
    with pytest.raises(ConfigError, match=words):
        find_account(context, environ)


def test_no_cluster_is_known(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no Kubernetes cluster is known") as caught:
        find_account(environ={"KUBECONFIG": str(tmp_path / "absent")})
    assert "set KUBECONFIG" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("users: [{name: u, user: {token: hunter2, x: [}}]\n", r"config:1:46: not valid YAML: while parsing"),
        ("users:\n- name: u\n  user: {token: *hunter2}\n", r"config:3:17: .* undefined alias"),
        ("users:\n- name: u\n  user: {token: !hunter2 x}\n", r"config:3:17: not valid YAML"),
        ("users: [{name: u, user: {token: hunter2}}]\nx: \0\n", "config:2: character U\\+0000"),
        ("users: [{name: u, user: {token: hunter2}}]\nx: 2026-99-99\n", "is not YAML that can be read"),
        ("users: [hunter2]\n", "`users` must be a list"),
        ("users: {hunter2: {token: hunter2}}\n", "`users` must be a list"),
        ("users: [{name: u, user: hunter2}]\n", "`users` must be a list"),
        ("users: [{user: {token: hunter2}}]\n", "`users` must be a list"),
        ("hunter2\n", "is no kubeconfig"),
    ],
)
def test_nothing_of_a_broken_file_is_repeated(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(ConfigError, match=words) as error:
        find_account(environ={"KUBECONFIG": str(tmp_path / "config")})
    assert "hunter2" not in f"{error.value} {error.value.problems}"
    assert error.value.__suppress_context__ or error.value.__context__ is None


def test_a_file_that_is_no_kubeconfig(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("- a\n")
    with pytest.raises(ConfigError, match="is no kubeconfig"):
        find_account(environ={"KUBECONFIG": str(path)})


def test_home_of_nobody_in_the_variable_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^KUBECONFIG: `~no-such-user/x` begins with") as error:
        find_account(environ={"KUBECONFIG": "~no-such-user/x"})
    assert error.value.hint


def test_user_without_a_home_has_no_default_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "~")
    with pytest.raises(ConfigError, match=r"there is no file `~/\.kube/config`"):
        find_account(environ={})
