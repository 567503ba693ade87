"""The launcher inside a pod: who this pod is, whom it waits for, and the role that it runs as PID 1."""
