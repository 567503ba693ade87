"""`clickmill pod`: from the start of a container to the exit code of its role."""

from __future__ import annotations

import dataclasses
import logging
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from clickmill.config import load_config
from clickmill.config.checks import run_problems
from clickmill.errors import ClickmillError, ConfigError, DataError, FormatError, GaveUpError
from clickmill.launch.address import Address
from clickmill.launch.become import role_command
from clickmill.launch.pod.api_server import ApiServer
from clickmill.launch.pod.deadline import Deadline
from clickmill.launch.pod.farewell import is_wanted_elsewhere
from clickmill.launch.pod.last_words import error_words, write_last_words
from clickmill.launch.pod.outputs import output_overrides
from clickmill.launch.pod.package import link_package
from clickmill.launch.pod.pod import read_pod
from clickmill.launch.pod.role_run import RoleRun
from clickmill.launch.pod.shared_token import shared_token
from clickmill.launch.pod.tries import Tries, read_tries
from clickmill.launch.pod.verdict import FAILURE, TERMINATED
from clickmill.launch.pod.waiting import RunOver, Speaker, Waiting
from clickmill.launch.pod.witness import Witness
from clickmill.launch.roles import INSECURE, TOKEN, TOKEN_FILE, read_role
from clickmill.launch.variables import Variables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clickmill.config import Config, RunnerConfig
    from clickmill.launch.pod.pod import Pod
    from clickmill.launch.role import Source
    from clickmill.launch.roles import Role

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Launcher:
    """One life of the container of a pod."""

    source: Source
    output: Path
    """Folder of the run, on a volume that all pods of the job see."""
    package: Path
    """Where the files of the job are mounted."""
    is_json: bool = False
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def run(self) -> int:
        """Everything, to the exit code of the pod. What goes wrong is also left for Kubernetes to tell."""
        tries = Tries()
        try:
            tries = read_tries(self.environ)
            tries.check()
            return self._run(tries)
        except ClickmillError as error:
            # Those of a kind of their own are final, whatever the try.
            is_worth_a_try = not isinstance(error, ConfigError | DataError | FormatError | GaveUpError)
            told = tries.given_up(error) if is_worth_a_try and tries.is_last else error
            write_last_words(error_words(told), self.environ)
            raise told from None

    def _run(self, tries: Tries) -> int:
        pod = read_pod(self.environ)
        logger.info("pod.started role=%s job=%s pod=%s ip=%s", pod.title, pod.job, pod.name, pod.ip)
        link_package(self.package, Path.cwd())
        configured = self._configured(pod)
        api = ApiServer.of_pod(self.environ)
        witness = Witness(api, pod)
        witness.start()
        try:
            return self._run_role(api, pod, tries, configured)
        finally:
            witness.close()

    def _run_role(
        self, api: ApiServer, pod: Pod, tries: Tries, configured: tuple[Config, RunnerConfig, Source]
    ) -> int:
        """From waiting for others to the end of the role."""
        config, runner, source = configured
        try:
            environ = self._wait(api, pod, runner)
        except RunOver as over:
            logger.info("%s", over)
            return 0
        except SystemExit as told:
            # Before there was a role to end.
            is_judged = told.code == TERMINATED and is_wanted_elsewhere(api, pod)
            return FAILURE if is_judged else int(told.code or 0)
        role = _role(pod, environ, runner)
        if role.ignored:
            logger.warning("variables without a meaning here: %s", ", ".join(role.ignored))
        # A rank that comes again goes on from the newest checkpoint; where there is none it begins.
        command = role_command(
            role, config, runner, source, resume=runner.is_collective, is_json=self.is_json
        )
        return RoleRun(pod, api, runner, command, environ, self.output, tries).run()

    def _wait(self, api: ApiServer, pod: Pod, runner: RunnerConfig) -> dict[str, str]:
        """The environment of the role, when all that it needs is there."""
        deadline = Deadline(runner.cluster.wait_for_members_s)
        environ = dict(self.environ) | self._token(api, pod, runner, deadline)
        waiting = Waiting(api, pod, deadline, logger.info)
        waiting.until_named(waiting.until_all_run()[0])
        return environ

    def _configured(self, pod: Pod) -> tuple[Config, RunnerConfig, Source]:
        """The configuration as the role is to read it."""
        config = load_config(self.source.model, overrides=self.source.overrides)
        runner = config.runners()[0]
        place = f"runner.{config.runner.index(runner)}"
        if runner.class_name == "infer":
            message = "`infer` runs in one process; a job of pods trains"
            raise ConfigError.of([config.problem(message, ("runner", config.runner.index(runner), "class"))])
        overrides = [f"{place}.class=cluster_train", *output_overrides(runner, place, self.output)]
        source = self.source.with_overrides(*overrides)
        # What is odd in it was told when it was loaded for the first time.
        notes = logging.getLogger("clickmill.config")
        level, notes.level = notes.level, logging.ERROR
        try:
            config = load_config(source.model, overrides=source.overrides)
        finally:
            notes.level = level
        problems = run_problems(config)
        if problems:
            raise ConfigError.of(problems)
        runner = config.runners()[0]
        _check_mode(config, runner, pod)
        return config, runner, source

    def _token(self, api: ApiServer, pod: Pod, runner: RunnerConfig, deadline: Deadline) -> dict[str, str]:
        """What the environment of the role needs to be one of the job's; nothing for what has no servers."""
        variables = Variables(self.environ)
        is_told = variables.name_of(*TOKEN, *TOKEN_FILE) is not None or bool(runner.cluster.token_file)
        if runner.is_collective or is_told or variables.flag(*INSECURE):
            return {}
        return {TOKEN[0]: shared_token(api, pod, deadline, Speaker(logger.info))}


def _check_mode(config: Config, runner: RunnerConfig, pod: Pod) -> None:
    """The manifest was made for one mode; a configuration that says another one was changed since."""
    if runner.is_collective == (pod.role == "worker"):
        return
    message = (
        f"is `{runner.fleet_mode}`, but this pod is a {pod.role}, as of a job "
        f"{'of equal workers' if pod.role == 'worker' else 'with parameter servers'}"
    )
    problem = config.problem(message, ("runner", config.runner.index(runner), "fleet_mode"))
    raise ConfigError.of([problem], hint="make the manifest anew with `clickmill submit`")


def _role(pod: Pod, environ: Mapping[str, str], runner: RunnerConfig) -> Role:
    """What the pod is, with everything else that the environment says about training."""
    told = {**environ, "CLICKMILL_HOST": pod.ip, "CLICKMILL_PORT": str(pod.port)}
    for name in ("PADDLE_PORT", "PADDLE_CURRENT_IP", "PADDLE_TRAINER_ID", "PADDLE_PSERVER_ID"):
        told.pop(name, None)
    if runner.is_collective:
        workers = [str(pod.address_of("worker", index)) for index in range(pod.num_trainers)]
        told |= {"CLICKMILL_WORKER_ADDRESSES": ",".join(workers), "CLICKMILL_INDEX": str(pod.index)}
        role = read_role(told, is_collective=True)
        assert role is not None
        return role
    told["CLICKMILL_COORDINATOR"] = str(pod.meeting)
    if pod.role == "trainer":
        role = read_role(told)
        assert role is not None
        # There may be more trainers by now than the job began with.
        return dataclasses.replace(role, index=pod.index, metrics_host=_any_host(pod))
    role = read_role({**told, "CLICKMILL_INDEX": "0"})
    assert role is not None
    return dataclasses.replace(
        role,
        # That of the pod, however many there were at the start: one that is made again has its old place.
        index=pod.index,
        # Who comes by other ways than the IP of the pod, such as `kubectl port-forward`, is heard, too.
        address=Address(_any_host(pod), pod.port),
        announced=Address(pod.ip, pod.port),
    )


def _any_host(pod: Pod) -> str:
    return "::" if ":" in pod.ip else "0.0.0.0"
