"""Starting the processes of a cluster: on this machine, from an environment, under MPI, over ssh."""
