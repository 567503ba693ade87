"""What `clickmill job` does: look at jobs on Kubernetes, change them, and get what they have made."""
