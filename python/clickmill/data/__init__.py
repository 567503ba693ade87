"""Samples on disk and in users' code, as batches."""
