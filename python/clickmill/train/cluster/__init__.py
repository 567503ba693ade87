"""Training with parameter servers: the job, a trainer's work, and its duties."""
