"""Which cluster, as whom: files of `KUBECONFIG`, the ServiceAccount of a pod, or `~/.kube/config`."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from lightkube.config.kubeconfig import SERVICE_ACCOUNT, KubeConfig, SingleConfig
from lightkube.core.exceptions import ConfigError as LightkubeConfigError

from clickmill.config.document import syntax_error
from clickmill.errors import ConfigError
from clickmill.store.named_path import expanded, home, is_file

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_FILE = Path("~/.kube/config")
_KINDS = ("clusters", "contexts", "users")
_FILE_KEYS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
_EXEC_VERSIONS = {"client.authentication.k8s.io/v1": "client.authentication.k8s.io/v1beta1"}
_HINT = (
    "set KUBECONFIG to the file that your cluster gave you, or put it at ~/.kube/config; "
    "`kubectl config get-contexts` lists what is known"
)


@dataclass(frozen=True, slots=True)
class Account:
    """A cluster and who speaks to it."""

    config: SingleConfig
    origin: str
    """Where it was found, for people: a file, or the ServiceAccount of this pod."""


def find_account(context: str = "", environ: Mapping[str, str] | None = None) -> Account:
    """The account that `context` names, or the current one.

    `KUBECONFIG` (files with `:` between; of entries with one name the first counts, as for kubectl) comes
    before the ServiceAccount of a pod, and that before `~/.kube/config`. Raises ConfigError where there is
    none.
    """
    environ = os.environ if environ is None else environ
    named = [_named(part) for part in environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    if not named and not context and _is_in_pod(environ):
        config = KubeConfig.from_service_account().get()
        assert config is not None
        return Account(config, "the ServiceAccount of this pod")
    default = [folder / DEFAULT_FILE.relative_to("~")] if (folder := home()) else []
    files = [path for path in named or default if is_file(path)]
    if not files:
        missing = ", ".join(f"`{path}`" for path in named) or f"`{DEFAULT_FILE}`"
        raise ConfigError(f"no Kubernetes cluster is known: there is no file {missing}", hint=_HINT)
    return Account(_choose(files, context), ", ".join(str(path) for path in files))


def _named(part: str) -> Path:
    try:
        return expanded(part)
    except ConfigError as error:
        raise ConfigError(f"KUBECONFIG: {error}", hint=_HINT) from None


def _is_in_pod(environ: Mapping[str, str]) -> bool:
    return "KUBERNETES_SERVICE_HOST" in environ and Path(SERVICE_ACCOUNT, "token").is_file()


def _choose(files: list[Path], context: str) -> SingleConfig:
    merged = _merge(files)
    shown = ", ".join(f"`{path}`" for path in files)
    name = context or merged["current-context"]
    known = {entry["name"]: entry["context"] for entry in merged["contexts"]}
    listed = ", ".join(f"`{each}`" for each in known) or "none"
    if not name:
        message = f"{shown} names no current context; known contexts: {listed}"
        raise ConfigError(message, hint="`kubectl config use-context NAME`, or `kubernetes.context`")
    if name not in known:
        raise ConfigError(f"there is no context `{name}` in {shown}; known contexts: {listed}", hint=_HINT)
    _require(merged, "clusters", known[name].get("cluster"), name, shown)
    if known[name].get("user"):
        _require(merged, "users", known[name]["user"], name, shown)
    else:  # lightkube wants one; an empty one has no credentials, which is what is meant
        merged["users"].append({"name": "", "user": {}})
        known[name]["user"] = ""
    try:
        found = KubeConfig.from_dict(merged, fname=files[0]).get(name)
    except (LightkubeConfigError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{shown}, context `{name}`: {error}", hint=_HINT) from error
    assert found is not None
    if found.user is None:
        found = found._replace(user=KubeConfig.from_dict(merged, fname=files[0]).users[""])
    return found


def _require(merged: dict[str, Any], kind: str, wanted: str | None, context: str, shown: str) -> None:
    if not any(entry["name"] == wanted for entry in merged[kind]):
        raise ConfigError(f"context `{context}` names `{wanted}`, which is not among the {kind} of {shown}")


def _merge(files: list[Path]) -> dict[str, Any]:
    merged: dict[str, Any] = {"current-context": "", **{kind: [] for kind in _KINDS}}
    for path in files:
        content = _read(path)
        merged["current-context"] = merged["current-context"] or content.get("current-context") or ""
        for kind in _KINDS:
            taken = {entry["name"] for entry in merged[kind]}
            merged[kind] += [
                {"name": entry["name"], kind[:-1]: _placed(entry.get(kind[:-1]) or {}, path.parent)}
                for entry in content.get(kind) or []
                if entry["name"] not in taken
            ]
    return merged


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        content = yaml.safe_load(text)
    except OSError as error:
        raise ConfigError(f"cannot read `{path}`: {error.strerror or error}", hint=_HINT) from error
    except yaml.YAMLError as error:
        raise syntax_error(error, text, str(path), hint=_HINT) from None
    except (ValueError, RecursionError):  # not UTF-8, a date that is none, too deep
        raise ConfigError(f"`{path}` is not YAML that can be read", hint=_HINT) from None
    if not isinstance(content, dict):
        raise ConfigError(f"`{path}` is no kubeconfig: its top must be a mapping", hint=_HINT)
    for kind in _KINDS:
        entries = content.get(kind) or []
        if not isinstance(entries, list) or not all(_is_entry(entry, kind[:-1]) for entry in entries):
            message = f"`{path}` is no kubeconfig: `{kind}` must be a list of mappings with `name`"
            raise ConfigError(f"{message} and `{kind[:-1]}`", hint=_HINT)
    return content


def _is_entry(entry: Any, key: str) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("name"), str)
        and isinstance(entry.get(key) or {}, dict)
    )


def _placed(entry: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The entry with files as they are seen from anywhere, and a plug-in that lightkube knows how to call."""
    placed = {
        key: str(folder / value) if key in _FILE_KEYS and value else value for key, value in entry.items()
    }
    plugin = placed.get("exec")
    if isinstance(plugin, dict) and plugin.get("apiVersion") in _EXEC_VERSIONS:
        # lightkube does not know v1, which differs from v1beta1 in what the plug-in is told, not in what it
        # answers.
        told = {
            "apiVersion": plugin["apiVersion"],
            "kind": "ExecCredential",
            "spec": {"interactive": False},
        }
        variable = {"name": "KUBERNETES_EXEC_INFO", "value": json.dumps(told)}
        placed["exec"] = {
            **plugin,
            "apiVersion": _EXEC_VERSIONS[plugin["apiVersion"]],
            "env": [*(plugin.get("env") or []), variable],
        }
    return placed
