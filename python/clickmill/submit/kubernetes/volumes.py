"""What pods see of disks: the package, the output, scratch folders, and the volumes that the user names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill.config.backend.pod_values import OUTPUT, PACKAGE, SCRATCH

if TYPE_CHECKING:
    from clickmill.config.backend import Volume
    from clickmill.submit.kubernetes.metadata import Object
    from clickmill.submit.kubernetes.plan import JobPlan

_READ_BY_ALL = 0o444


def volumes(plan: JobPlan) -> list[Object]:
    """As they stand in the spec of a pod."""
    package = {"defaultMode": _READ_BY_ALL, "name": plan.names.package, "optional": False}
    return [
        {"name": "package", "configMap": package},
        *({"name": name, "emptyDir": {}} for name in SCRATCH),
        {"name": "output", **_output_source(plan)},
        *({"name": f"user-{volume.name}", **_source(volume)} for volume in plan.settings.volumes),
    ]


def mounts(plan: JobPlan) -> list[Object]:
    """Where the container sees them."""
    return [
        {"name": "package", "mountPath": PACKAGE, "readOnly": True},
        *({"name": name, "mountPath": path} for name, path in SCRATCH.items()),
        {"name": "output", "mountPath": OUTPUT},
        *(
            {
                "name": f"user-{volume.name}",
                "mountPath": volume.place,
                "readOnly": volume.read_only,
            }
            for volume in plan.settings.volumes
        ),
    ]


def _output_source(plan: JobPlan) -> Object:
    output = plan.settings.output
    if output.host_path:
        return _host_path(output.host_path)
    return _claim(output.claim or plan.names.output, read_only=False)


def _source(volume: Volume) -> Object:
    if volume.claim:
        return _claim(volume.claim, read_only=volume.read_only)
    if volume.host_path:
        return _host_path(volume.host_path)
    assert volume.nfs is not None
    nfs = {"path": volume.nfs.path, "readOnly": volume.read_only, "server": volume.nfs.server}
    return {"nfs": nfs}


def _host_path(path: str) -> Object:
    # `Directory`, so that a folder that is missing is told as such: one that the node makes belongs to root.
    return {"hostPath": {"path": path, "type": "Directory"}}


def _claim(name: str, *, read_only: bool) -> Object:
    return {"persistentVolumeClaim": {"claimName": name, "readOnly": read_only}}
