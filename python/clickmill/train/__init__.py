"""Training on one machine: pipeline, passes, checkpoints, evaluation and what a run writes."""
