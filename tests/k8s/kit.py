"""The machine below a dev cluster: nodes that lose power or are added, a control plane that goes away."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

CONTROL_PLANE = (
    "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler",
    "vc-webhook-manager", "vc-controller-manager", "vc-scheduler",
)  # fmt: skip


@dataclass(frozen=True)
class Kit:
    """The scripts that made the cluster."""

    folder: Path

    def up(self, *words: str) -> None:
        """What is missing comes back; what runs is left alone."""
        self._run(self.folder / "up", *words)

    def lose_node(self, name: str) -> None:
        """All processes of the node die at once, as when it loses power."""
        self._run(self.folder / "down", "--node", name)

    def stop_control_plane(self) -> None:
        """API server, database, schedulers, controllers are gone and pods run on; `up` brings them back."""
        script = f". {self.folder}/lib.sh; stop KILL {' '.join(CONTROL_PLANE)}"
        self._run("bash", "-c", script)

    def keep_volumes_coming(self) -> None:
        """The program that makes volumes loses that half of it when a claim goes at the wrong moment."""
        find = f'. {self.folder}/lib.sh; alive provisioner && read -r pid _ <"$PIDS/provisioner"'
        whole = f'{find} && [ "$(pgrep -cP "$pid")" -ge 3 ]'
        if subprocess.run(["bash", "-c", whole], check=False).returncode:
            self.stop_volumes()
            self.up()

    def stop_volumes(self) -> None:
        """Claims stay without volumes from now on."""
        self._run("bash", "-c", f". {self.folder}/lib.sh; stop KILL provisioner")

    def scheduler_settings(self) -> str:
        """The configuration of Volcano's scheduler."""
        return self._run("bash", "-c", f'. {self.folder}/lib.sh; cat "$RUN/volcano/scheduler.conf"')

    def schedule_by(self, settings: str) -> None:
        """Volcano's scheduler starts anew, with this configuration."""
        stop = f". {self.folder}/lib.sh; stop KILL vc-scheduler"
        write = 'printf %s "$1" >"$RUN/volcano/scheduler.conf"'
        self._run("bash", "-c", f"{stop}; {write}", "schedule-by", settings)
        self.up()

    def on_node(self, name: str, script: str) -> None:
        """Runs a script of the shell in the namespaces of a node."""
        find = f'. {self.folder}/lib.sh; read -r pid _ <"$PIDS/node-{name}"'
        entered = f'{find}; nsenter -t "$(pgrep -P "$pid")" -a sh -c "$1"'
        self._run("bash", "-c", entered, "on-node", script)

    @staticmethod
    def _run(*command: str | Path) -> str:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
        return done.stdout
