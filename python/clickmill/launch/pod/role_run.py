"""The role of a pod, from its start to the exit code of the pod."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clickmill.launch.address import Address
from clickmill.launch.pod.child import Child, grace_s
from clickmill.launch.pod.end_file import end_file
from clickmill.launch.pod.error_file import error_file
from clickmill.launch.pod.farewell import is_wanted_elsewhere, linger, take_snapshot
from clickmill.launch.pod.last_words import last_words, summary_words, write_last_words
from clickmill.launch.pod.lookout import Lookout
from clickmill.launch.pod.verdict import FAILURE, FINAL_CODES, TERMINATED, pod_exit_code
from clickmill.launch.roles import TOKEN, TOKEN_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from clickmill.config import RunnerConfig
    from clickmill.launch.pod.api_server import ApiServer
    from clickmill.launch.pod.pod import Pod
    from clickmill.launch.pod.tries import Tries
    from clickmill.launch.role import RoleCommand

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RoleRun:
    """One life of a role."""

    pod: Pod
    api: ApiServer
    runner: RunnerConfig
    command: RoleCommand
    environ: dict[str, str]
    output: Path
    tries: Tries

    def run(self) -> int:
        """To its end; the exit code of the pod. Raises what another pod has failed with, if that ended it."""
        logger.info("role.started role=%s", self.pod.title)
        with error_file() as left, end_file() as end:
            child = Child(
                self.command.argv,
                {**self.environ, **self.command.env, **left.variables, **end.variables},
                grace_s=grace_s(self.environ),
                before_end=lambda: None if lookout.is_over else self._leave(),
            )
            lookout = Lookout(self.api, self.pod, child.end, end.tell)
            lookout.start()
            code = child.run()
            lookout.close()
            told = left.read()
        asked = "" if child.asked is None else f" asked_by={child.asked.name}"
        logger.info(
            "role.ended role=%s exit_code=%d%s cpu_s=%.1f peak_mib=%d",
            *(self.pod.title, code, asked, child.cpu_s, child.peak_bytes >> 20),
        )
        if code == 0:
            return self._end_well(is_asked=child.asked is not None)
        if lookout.error is not None:
            raise lookout.error
        if lookout.is_over:
            return 0
        return self._end_badly(code, child, told)

    def _end_well(self, *, is_asked: bool) -> int:
        if self.pod.role != "pserver":
            write_last_words(summary_words(self.output), self.environ)
            return 0
        try:
            if not is_asked:
                linger(self.api, self.pod)
                return 0
        except SystemExit:
            pass
        # A server whose buckets have moved is taken away while training goes on. By ending well it would tell
        # that training is done: with as many such pods as there are servers left, Volcano completes the job.
        return FAILURE if is_wanted_elsewhere(self.api, self.pod) else TERMINATED

    def _end_badly(self, code: int, child: Child, told: dict[str, Any] | None) -> int:
        is_asked = child.asked is not None
        verdict = pod_exit_code(
            code,
            kind=None if told is None else str(told.get("kind")),
            is_asked=is_asked,
            is_wanted_elsewhere=is_asked and is_wanted_elsewhere(self.api, self.pod),
            tries=self.tries,
        )
        words = last_words(self.pod.title, code, child.words, told=told)
        if self.tries.is_last and verdict in FINAL_CODES and code not in FINAL_CODES:
            words += f"\nhint: this was the last of {self.tries.max_restarts} restarts"
        write_last_words(words, self.environ)
        if verdict != code:
            logger.info("pod.ends exit_code=%d", verdict)
        return verdict

    def _leave(self) -> None:
        """When it is told to end, before the role is."""
        if self.pod.role != "pserver":
            return
        tls = None if self.runner.cluster.tls is None else self.runner.cluster.tls.model_dump()
        coordinator = Address("127.0.0.1", self.pod.port) if self.pod.index == 0 else self.pod.meeting
        patience_s = grace_s(self.environ) / 2
        token = _token_of(self.environ, self.runner)
        take_snapshot(coordinator, token=token, tls=tls, patience_s=patience_s)


def _token_of(environ: Mapping[str, str], runner: RunnerConfig) -> str | None:
    from clickmill.ps.wire import read_token  # noqa: PLC0415 - needed at the end alone

    return read_token(environ.get(TOKEN_FILE[0]) or runner.cluster.token_file) or environ.get(TOKEN[0])
