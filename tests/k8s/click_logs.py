"""A volume with click logs, filled as the guide says."""

from __future__ import annotations

from pathlib import Path

from .conftest import Kubectl

MANIFEST = Path(__file__).parents[2] / "deploy" / "k8s" / "click-logs.yaml"
MOUNT = "  volumes: [{name: data, claim: click-logs, mount: train_data}]\n"
"""For backend.yaml: pods see the logs in `train_data`."""


def fill(kubectl: Kubectl, image: str, *files: Path) -> None:
    """The claim `click-logs` with the files."""
    text = MANIFEST.read_text()
    assert "clickmill:dev" in text
    kubectl("apply", "-f", "-", stdin=text.replace("clickmill:dev", image))
    kubectl("wait", "--for=condition=Ready", "pod/click-logs", "--timeout=110s")
    for path in files:
        kubectl("cp", str(path), f"click-logs:/data/{path.name}")
    kubectl("delete", "pod", "click-logs")
