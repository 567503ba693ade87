"""Training by a group of equal ranks: every one has the same parameters after every step."""
