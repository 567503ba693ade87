"""Hand a job over to a cluster: this machine, MPI, ssh hosts, PaddleCloud, Kubernetes."""
