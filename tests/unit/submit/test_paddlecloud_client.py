"""The client of PaddleCloud while it runs: what is heard of it, and how it ends."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from clickmill.errors import ClickmillError
from clickmill.submit.paddlecloud.api import submit

from .jobs import KINDS, SECRETS, request, write_job

SUBMIT = (sys.executable, "-m", "clickmill", "submit", "-m", "config.yaml", "-b", "backend.yaml")
LINGERS = """\
#!/bin/sh
# Deaf, and with a child. All that is alive of it holds LIFE open.
trap '' TERM INT HUP
exec 9> "$LIFE"
sleep 60 &
printf '%s\\n' "$SAYS"
echo started >&9
wait
touch "$SUBMITTED"
"""

Client = Callable[[str], None]
Submitting = Callable[..., AbstractContextManager["subprocess.Popen[str]"]]


@pytest.fixture
def client(folder: Path, monkeypatch: pytest.MonkeyPatch, secrets: tuple[str, ...]) -> Client:
    """Puts a program on PATH as the client, for the job in the current folder."""
    write_job(folder, *KINDS["mpi"])
    (folder / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{folder}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("LIFE", f"{folder}/life")
    monkeypatch.setenv("SUBMITTED", f"{folder}/submitted")

    def write(text: str) -> None:
        (folder / "bin/paddlecloud").write_text(text)
        (folder / "bin/paddlecloud").chmod(0o755)

    return write


@pytest.fixture
def submitting(client: Client, folder: Path) -> Submitting:
    """`clickmill submit` in a process of its own, with a client and more variables."""
    os.mkfifo(folder / "life")

    @contextmanager
    def start(text: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
        client(text)
        environment = {**os.environ, **variables}
        with subprocess.Popen(
            SUBMIT, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    return start


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_client_and_its_children_end_with_the_command(
    number: signal.Signals, submitting: Submitting, folder: Path
) -> None:
    with submitting(LINGERS, SAYS="Start") as process, (folder / "life").open() as life:
        assert life.readline() == "started\n"
        process.send_signal(number)
        assert life.read() == "", "nothing of the client is alive"
        process.communicate()
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
    assert not (folder / "submitted").exists()


@pytest.mark.parametrize(
    ("says", "words"),
    [
        (
            '{"groupName": "mine", "jobId": "job-1",',
            "the job `job-1`, which it has named, may have been submitted",
        ),
        ("Start checking", "ended before it named a job; one may have been submitted all the same"),
    ],
)
def test_interruption_says_what_may_have_been_submitted(
    says: str, words: str, submitting: Submitting, folder: Path
) -> None:
    with submitting(LINGERS, SAYS=says) as process:
        with (folder / "life").open() as life:
            life.readline()
            process.send_signal(signal.SIGTERM)
            life.read()
        _, told = process.communicate()
    assert says in told
    assert "warning: SIGTERM: " in told
    assert words in told
    assert "look for it on the platform" in told


ENDS_IN_ORDER = """\
#!/bin/sh
trap 'read word < "$GO"; echo "{\\"jobId\\": \\"$word\\"}"; exit 1' TERM
exec 9> "$LIFE"
echo started >&9
sleep 60 9>&- &
wait
"""


@pytest.mark.timeout(100)
def test_client_may_end_in_order_when_it_is_asked_to(submitting: Submitting, folder: Path) -> None:
    os.mkfifo(folder / "go")
    with submitting(ENDS_IN_ORDER, GO=f"{folder}/go") as process:
        with (folder / "life").open() as life:
            life.readline()
            process.terminate()
            (folder / "go").write_text("job-9\n")
        _, told = process.communicate()
    assert "the job `job-9`, which it has named, may have been submitted" in told


@pytest.mark.timeout(100)
def test_words_of_the_client_come_when_it_says_them(submitting: Submitting, folder: Path) -> None:
    os.mkfifo(folder / "go")
    client = '#!/bin/sh\necho first\nread word < "$GO"\necho "$word"\necho \'{"jobId": 1}\'\n'
    with submitting(client, GO=f"{folder}/go") as process:
        assert process.stderr is not None
        assert "first\n" in iter(process.stderr.readline, "")
        (folder / "go").write_text("second\n")
        assert "second\n" in process.stderr.readlines()
    assert process.returncode == 0


def test_secret_that_is_said_in_parts_is_masked(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "clickmill")
    sk = SECRETS["CLICKMILL_SK"]
    client(f"#!/bin/sh\nprintf 'key {sk[:5]}'\nprintf '{sk[5:]} is wrong'\n")
    submit(request())
    assert "key *** is wrong" in caplog.text
    assert sk not in caplog.text


def test_line_that_is_too_long_shows_no_part_of_a_secret(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "clickmill")
    sk = SECRETS["CLICKMILL_SK"]
    client(f"""#!{sys.executable}
print(("{sk} " * 400_000)[:3_000_000])
print('{{"jobId": 1}}')
""")
    assert submit(request()).facts["reply"] == {"jobId": 1}
    (shown,) = [line for line in caplog.messages if "the line is too long to be shown" in line]
    assert set(shown.partition(" ... ")[0]) <= set("* ")
    assert sk[:5] not in caplog.text
    assert sk[-5:] not in caplog.text


def test_client_that_is_killed_may_have_submitted_the_job(client: Client) -> None:
    client("#!/bin/sh\nkill -9 $$\n")
    with pytest.raises(ClickmillError, match="one may have been submitted all the same") as error:
        submit(request())
    assert "was killed by SIGKILL" in str(error.value)


def test_client_finds_no_proxy_in_its_environment(
    client: Client, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "clickmill")
    proxies = {"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"}
    for name in proxies:
        monkeypatch.setenv(name, "http://proxy:3128")
    monkeypatch.setenv("no_proxy", "localhost")
    client("#!/bin/sh\nenv\n")
    submit(request())
    names = {line.partition("=")[0] for line in caplog.messages}
    assert "no_proxy" in names
    assert not names & proxies


REFUSES = """\
#!/bin/sh
echo '{"code": 403,'
echo ' "message": "no quota for key-id-1"}'
exit 3
"""


def test_reply_of_a_client_that_fails_is_told(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "clickmill")
    client(REFUSES)
    with pytest.raises(ClickmillError, match="ended with 3; the job has not been submitted"):
        submit(request())
    assert '"message": "no quota for ***"}' in caplog.text


def test_client_that_fails_and_has_named_a_job_may_have_submitted_it(client: Client) -> None:
    client(REFUSES.replace('"code": 403', '"jobId": "job-1"'))
    with pytest.raises(ClickmillError, match="named the job `job-1`, which may have been submitted") as error:
        submit(request())
    assert "has not been submitted" not in str(error.value)
    assert "look for it on the platform before you submit" in str(error.value.hint)


@pytest.mark.parametrize(
    ("says", "reply"),
    [
        ('{"code": 403, "jobId": ""}', {"code": 403, "jobId": ""}),
        ('{"message": "later"}', {"message": "later"}),
    ],
)
def test_reply_that_names_no_job_says_not_that_one_is_submitted(
    says: str, reply: dict[str, object], client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client(f"#!/bin/sh\necho '{says}'\n")
    facts = submit(request()).facts
    assert facts["reply"] == reply
    assert facts["is_submitted"] is None
    assert "ended well and named no job; look for it on the platform" in caplog.text


def test_client_that_ends_well_without_a_reply_has_submitted_on_mpi_alone(
    client: Client, folder: Path
) -> None:
    client("#!/bin/sh\necho ready\n")
    assert submit(request()).facts["is_submitted"] is True
    write_job(folder, *KINDS["k8s_ps_cpu"])
    assert submit(request()).facts["is_submitted"] is None
