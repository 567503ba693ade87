"""Limits of whole numbers, for configurations and command lines; light to import."""

from __future__ import annotations

MAX_WHOLE_NUMBER = 2**63 - 1
"""What every part of the system can count to."""
MAX_SEED = 2**64 - 1
MAX_THREADS = 1024
