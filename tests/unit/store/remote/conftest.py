from __future__ import annotations

from tests.remote.fixtures import *  # noqa: F403
