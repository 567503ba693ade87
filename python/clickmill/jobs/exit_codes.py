"""What the exit code of a pod's process says, in words."""

from __future__ import annotations

from clickmill.launch.failure import exit_words
from clickmill.launch.pod.verdict import FINAL_CODES

__all__ = ["FINAL_CODES", "code_words"]

_MEANINGS = {
    1: "it failed while running",
    2: "wrong arguments or configuration",
    3: "samples that cannot be read",
    4: "a damaged file, or one of another version",
    5: "it failed for good",
    126: "its program cannot be run",
    127: "its program is not in the image",
    130: "it was interrupted",
    143: "it was told to end",
}
_OUT_OF_MEMORY = "OOMKilled"


def code_words(code: int, reason: str = "") -> str:
    """`ended with exit code 3, samples that cannot be read`; `reason` is the kubelet's word for it."""
    if reason == _OUT_OF_MEMORY:
        return "was killed for taking more memory than its limit"
    if code < 0:
        return f"was ended by the cluster ({reason})" if reason else "was ended by the cluster"
    words = exit_words(code)
    meaning = _MEANINGS.get(code)
    return f"{words}, {meaning}" if meaning and words.startswith("ended") else words
