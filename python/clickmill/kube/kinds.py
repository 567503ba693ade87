"""The kinds of objects that we make or read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object, and where the API server keeps it."""

    group: str
    """Empty for the oldest kinds."""
    version: str
    plural: str
    """As it stands in addresses and in Roles: `pods`."""
    name: str
    """As it stands under `kind`: `Pod`."""
    is_namespaced: bool = True

    @property
    def api_version(self) -> str:
        """As it stands under `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """As kubectl takes it: `jobs.batch.volcano.sh`, `pods`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str | None, name: str | None = None) -> str:
        """Address of an object, or of all of them; None as the namespace means all namespaces."""
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.is_namespaced and namespace is not None:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        return "/" + "/".join(parts if name is None else [*parts, name])


POD = Kind("", "v1", "pods", "Pod")
SERVICE = Kind("", "v1", "services", "Service")
SECRET = Kind("", "v1", "secrets", "Secret")
CONFIG_MAP = Kind("", "v1", "configmaps", "ConfigMap")
CLAIM = Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
SERVICE_ACCOUNT = Kind("", "v1", "serviceaccounts", "ServiceAccount")
EVENT = Kind("", "v1", "events", "Event")
NODE = Kind("", "v1", "nodes", "Node", is_namespaced=False)
NAMESPACE = Kind("", "v1", "namespaces", "Namespace", is_namespaced=False)
RESOURCE_QUOTA = Kind("", "v1", "resourcequotas", "ResourceQuota")
ROLE = Kind("rbac.authorization.k8s.io", "v1", "roles", "Role")
ROLE_BINDING = Kind("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
NETWORK_POLICY = Kind("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
STATEFUL_SET = Kind("apps", "v1", "statefulsets", "StatefulSet")
DEPLOYMENT = Kind("apps", "v1", "deployments", "Deployment")
JOB = Kind("batch", "v1", "jobs", "Job")
STORAGE_CLASS = Kind("storage.k8s.io", "v1", "storageclasses", "StorageClass", is_namespaced=False)
PRIORITY_CLASS = Kind("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", is_namespaced=False)
ACCESS_REVIEW = Kind(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", is_namespaced=False
)
SELF_REVIEW = Kind(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", is_namespaced=False
)
VOLCANO_JOB = Kind("batch.volcano.sh", "v1alpha1", "jobs", "Job")
POD_GROUP = Kind("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
QUEUE = Kind("scheduling.volcano.sh", "v1beta1", "queues", "Queue", is_namespaced=False)
COMMAND = Kind("bus.volcano.sh", "v1alpha1", "commands", "Command")

_KINDS = {(kind.api_version, kind.name): kind for kind in list(globals().values()) if isinstance(kind, Kind)}

FINISHED_PHASES = frozenset({"Completed", "Failed", "Terminated", "Aborted"})
"""Of a Volcano Job: it does not change by itself any more."""


def kind_of(item: dict[str, object]) -> Kind:
    """The kind of an object. Raises KeyError for one that is not listed here."""
    return _KINDS[str(item["apiVersion"]), str(item["kind"])]
