"""PaddleCloud: the submission folder of a job, and the client that sends it."""
