"""A job on Kubernetes: from configurations to objects, and from objects to a cluster.

One module a kind makes the objects (`service.py`, `volcano_job.py`, ...) out of a `JobPlan`; `manifest.py`
puts them in order, `apply.py` brings them to a cluster. The objects are the same whether they are shown,
committed and applied by kubectl, or applied by `clickmill submit`.
"""
