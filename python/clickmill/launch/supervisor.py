"""Processes of a run under one hand: started in order, started again when they die, ended in order.

Servers come first and go last. A server or trainer that dies is started again a number of times; what fails
for good ends the run with its words. A signal ends trainers, then servers; a second one kills them all.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from clickmill.errors import ClickmillError, StateError
from clickmill.launch.failure import exit_words, failure, is_final, is_lost, log_hint, system_failure
from clickmill.launch.process import Process
from clickmill.launch.signals import Stopped, signals_to
from clickmill.store.durable import writing

if TYPE_CHECKING:
    import signal
    from collections.abc import Awaitable, Callable, Coroutine
    from pathlib import Path

    from clickmill.launch.address import Address
    from clickmill.launch.member import Member
    from clickmill.launch.screen import Screen

T = TypeVar("T")

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
"""Before a process is started again; doubled each time."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How much is forgiven, and how long anything is waited for."""

    max_restarts: int = 3
    """Of each process."""
    start_deadline_s: float = 600.0
    """Until a server listens."""
    end_deadline_s: float = 15.0
    """Between being asked to end and being killed."""
    servers_deadline_s: float = 60.0
    """Until servers have ended by themselves after the last trainer."""


class Supervisor:
    """Members of one run; `logs` is the folder for a log of each, None for none."""

    def __init__(self, screen: Screen, logs: Path | None, policy: Policy) -> None:
        self._screen = screen
        self._logs = logs
        self._policy = policy
        self._members: list[Member] = []
        self._lives: list[asyncio.Task[None]] = []
        self._ending = asyncio.Event()
        self.over: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        """Set with the reason when the run cannot go on."""

    async def start_server(self, member: Member) -> Address:
        """Start a server and wait until it listens; where."""
        self._start(member)
        return await self._listens(member)

    async def start_servers(self, members: list[Member]) -> list[Address]:
        """Start several at once."""
        for member in members:
            self._start(member)
        return [await self._listens(member) for member in members]

    def start_trainer(self, member: Member) -> None:
        """Start a trainer."""
        self._start(member)

    async def finish(self) -> Any:
        """Wait until all have ended well; the summary of the first trainer that printed one."""
        trainers = [each for each in self._members if each.kind == "trainer"]
        servers = [each for each in self._members if each.kind == "server"]
        if not trainers:
            await _all_done(servers)
        else:
            await self._trainers_end(trainers, servers)
            await self._servers_end(servers)
        return next((summary for each in trainers if (summary := each.summary()) is not None), None)

    async def end(self) -> None:
        """End whatever still runs: trainers, then servers, each first asked and then killed."""
        self._ending.set()
        for kind in ("trainer", "server"):
            await self._end([each for each in self._members if each.kind == kind])
        for life in self._lives:
            life.cancel()
        await asyncio.gather(*self._lives, return_exceptions=True)
        for member in self._members:
            member.close()

    def kill(self) -> None:
        """End all at once."""
        self._ending.set()
        for member in self._members:
            if member.process is not None:
                member.process.kill()

    def stop(self, reason: BaseException) -> None:
        """The run cannot go on; the first reason counts."""
        if not self.over.done():
            self.over.set_result(reason)

    async def _listens(self, member: Member) -> Address:
        seconds = self._policy.start_deadline_s
        try:
            return await asyncio.wait_for(asyncio.shield(member.listens), seconds)
        except TimeoutError:
            raise StateError(
                f"{member.name} does not listen, {seconds:g} seconds after it was started",
                hint=self._log_hint(member),
            ) from None

    def _start(self, member: Member) -> None:
        log = self._log_of(member.name)
        if log is None:
            member.attach(self._screen, None)
        else:
            with writing(log):
                log.parent.mkdir(parents=True, exist_ok=True)
                log.unlink(missing_ok=True)
                member.attach(self._screen, log)
        self._members.append(member)
        self._lives.append(asyncio.create_task(self._live(member)))

    async def _live(self, member: Member) -> None:
        """All lives of a member, until it ends well, fails for good, or the run is over."""
        try:
            while not self._ending.is_set():
                code = await self._one_life(member)
                if self._ending.is_set() or self._is_done(member, code):
                    return
                if is_final(code, member.words) or not self._may_come_back(member):
                    if is_lost(member.words):
                        await self._other_fails(member)
                    self.stop(failure(member.name, code, member.words, self._existing_log))
                    return
                member.num_restarts += 1
                self._screen.note(
                    f"{member.name} {exit_words(code)}; started again, "
                    f"{member.num_restarts} of {self._policy.max_restarts} times"
                )
                pause = _FIRST_PAUSE_S * 2 ** (member.num_restarts - 1)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._ending.wait(), min(pause, _LONGEST_PAUSE_S))
        except ClickmillError as error:
            self.stop(error)
        except OSError as error:
            self.stop(system_failure(member.name, error, self._log_of(member.name)))

    def _may_come_back(self, member: Member) -> bool:
        return member.can_come_back and member.num_restarts < self._policy.max_restarts

    async def _other_fails(self, member: Member) -> None:
        """Wait for the end of whoever failed first: its reason counts, and it may take longer to end."""
        member.is_lost = True
        if all(each.is_lost or not each.is_alive for each in self._members):
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self.over), self._policy.end_deadline_s)

    async def _one_life(self, member: Member) -> int:
        member.start_over()
        command = member.command(member.address)
        member.process = await Process.start(command, member.take_output, member.take_words)
        if self._ending.is_set():
            member.process.kill()  # it was started while the end began
        try:
            return await member.process.wait()
        finally:
            member.process = None

    def _is_done(self, member: Member, code: int) -> bool:
        if code != 0:
            return False
        if member.kind == "server" and not member.listens.done():
            self.stop(StateError(f"{member.name} ended before it listened", hint=self._log_hint(member)))
        else:
            member.is_done.set()
        return True

    async def _trainers_end(self, trainers: list[Member], servers: list[Member]) -> None:
        """Wait for the trainers.

        One that was still starting when the others had done all there was to do finds no server any more:
        when the servers have ended well, the run is over for it too.
        """
        ended = asyncio.ensure_future(_all_done(trainers))
        served = asyncio.ensure_future(_all_done(servers)) if servers else None
        waits = [ended] if served is None else [ended, served]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.shield(ended), self._policy.end_deadline_s)
            if not ended.done():
                late = [each for each in trainers if not each.is_done.is_set()]
                self._screen.note(f"{', '.join(each.name for each in late)} came too late; ended")
                self._ending.set()
                await self._end(late)
        finally:
            for wait in waits:
                wait.cancel()

    async def _servers_end(self, servers: list[Member]) -> None:
        """They end by themselves when the run is over; one that does not is ended, and told of."""
        seconds = self._policy.servers_deadline_s
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(_all_done(servers), seconds)
        late = [each.name for each in servers if not each.is_done.is_set()]
        if late:
            self._screen.note(
                f"warning: {', '.join(late)} did not end within {seconds:g} seconds after training"
            )

    async def _end(self, members: list[Member]) -> None:
        processes = [(each, each.process) for each in members if each.process is not None]
        for _, process in processes:
            process.ask_to_end()
        lives = [life for each, life in zip(self._members, self._lives, strict=True) if each in members]
        if not lives:
            return
        _, pending = await asyncio.wait(lives, timeout=self._policy.end_deadline_s)
        if not pending:
            return
        for member in members:
            if member.process is not None:
                seconds = self._policy.end_deadline_s
                self._screen.note(f"{member.name} did not end within {seconds:g} seconds; killed")
                member.process.kill()
        await asyncio.wait(pending, timeout=self._policy.end_deadline_s)

    def _log_of(self, name: str) -> Path | None:
        return None if self._logs is None else self._logs / f"{name.replace(' ', '-')}.log"

    def _existing_log(self, name: str) -> Path | None:
        """Also that of a member whom another command started: with MPI all have one folder."""
        log = self._log_of(name)
        return log if log is not None and log.exists() else None

    def _log_hint(self, member: Member) -> str | None:
        return log_hint(self._log_of(member.name))


async def _nothing() -> None:
    pass


def supervise(
    body: Callable[[Supervisor], Coroutine[Any, Any, T]],
    *,
    screen: Screen,
    logs: Path | None,
    policy: Policy,
    at_end: Callable[[], Awaitable[None]] = _nothing,
) -> T:
    """Run `body` with a supervisor; whatever happens, no process is left behind.

    `at_end` is run when all processes have ended, however they have. Raises what failed, KeyboardInterrupt
    after Ctrl-C, and SystemExit with the code of another signal.
    """
    try:
        return asyncio.run(_supervise(body, at_end, screen, logs, policy))
    except Stopped as stopped:
        raise stopped.as_exit() from None


async def _supervise(
    body: Callable[[Supervisor], Coroutine[Any, Any, T]],
    at_end: Callable[[], Awaitable[None]],
    screen: Screen,
    logs: Path | None,
    policy: Policy,
) -> T:
    supervisor = Supervisor(screen, logs, policy)

    def heard(number: signal.Signals) -> None:
        """The first signal ends the run in order, the next one at once."""
        if supervisor.over.done():
            supervisor.kill()
        else:
            supervisor.stop(Stopped(number))
            screen.note(f"{number.name}: ending trainers, then servers; once more to kill them")

    with signals_to(heard):
        work = asyncio.create_task(body(supervisor))
        try:
            either: set[asyncio.Future[Any]] = {work, supervisor.over}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if supervisor.over.done():
                raise supervisor.over.result()
            return await work
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            try:
                await supervisor.end()
                await at_end()
            finally:
                screen.close()


async def _all_done(members: list[Member]) -> None:
    waits: list[Awaitable[Any]] = [member.is_done.wait() for member in members]
    await asyncio.gather(*waits)
