"""What a cluster lacks before a job can run on it, and the remedy for each thing."""
