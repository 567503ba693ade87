"""The connection to the API server of a Kubernetes cluster.

Everything that is asked of a cluster goes through `client.Cluster`: objects are what they are in YAML, each
call has a deadline, and what goes wrong is an error of ours with a hint. lightkube, which finds the server
and signs in, is an extra (`clickmill[kubernetes]`); without it `connect` raises MissingExtra.
"""

from __future__ import annotations

from clickmill.kube.connect import connect
from clickmill.kube.kinds import Kind

__all__ = ["Kind", "connect"]
