"""Where checkpoints, and later releases, lie."""
