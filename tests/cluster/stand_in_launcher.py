"""`clickmill`, with stand-ins for the roles that it starts."""

from __future__ import annotations

import sys
from pathlib import Path

from clickmill.__main__ import main
from clickmill.launch import role

if __name__ == "__main__":
    role.CLICKMILL = (sys.executable, str(Path(__file__).with_name("stand_in.py")))
    main()
