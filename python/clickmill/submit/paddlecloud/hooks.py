"""before_hook.sh and end_hook.sh: what nodes do before and after the job."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clickmill.submit.paddlecloud.job import Job

_LEAST_PYTHON = (3, 11)

_CARD = """
python -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' || {
    echo "error: torch sees no card on this node" >&2
    exit 1
}
"""


def before_hook(job: Job) -> str:
    """Installs clickmill, with all that training needs; no Paddle is needed."""
    version = ".".join(map(str, _LEAST_PYTHON))
    paddle = job.backend.config.paddle_version
    return f"""\
#!/bin/sh
# Runs on every node before the job. Paddle ({paddle} in backend.yaml) is not needed.
echo "Run before_hook.sh ..."

python -c 'import sys; sys.exit(sys.version_info < {_LEAST_PYTHON})' || {{
    echo "error: clickmill needs Python {version} or newer as \\`python\\` on this node" >&2
    exit 1
}}
python -m pip install {shlex.quote(job.requirement)} || exit 1
{_CARD if job.device == "gpu" else ""}
echo "End before_hook.sh ..."
"""


def end_hook() -> str:
    """For the user to fill."""
    return """\
#!/bin/sh
# Runs on every node after the job.
echo "Run end_hook.sh ..."
"""
