"""The dense net on a CUDA card; rows stay in the memory of the host."""
