"""What Volcano does when pods of a job end, and why it is said in this way.

Each line was tried on a cluster with Volcano 1.15.1 and read in its source (pkg/controllers/job); for people
the same is in docs/guides/kubernetes.md.

- Pods have `restartPolicy: Never`. With `OnFailure` the kubelet starts a container again within its pod,
  which then never fails: Volcano hears neither of `PodFailed` nor of exit codes.
- Policies are tried in order, those of the task before those of the job, and the first that fits counts. An
  exit code is known only when a pod becomes Failed.
- There is no action that makes a job Failed. `TerminateJob` comes nearest: all other pods are deleted, the
  one that failed stays with its logs, and the job is Terminated for good. Failed is a job that has used up
  `maxRetry`.
- `RestartPod` deletes the failed pod and makes it again, also on a full cluster; the others run on. It counts
  towards `maxRetry`, deletes the PodGroup and the Service and ConfigMap of the `svc` plugin, and makes them
  again: nothing of ours may depend on those. It deletes the failed pod the last time, too, so that as a rule
  nothing is left to tell why: therefore launchers count for themselves, and end with a final code in time.
- A pod that is deleted, by a drain, by a preemption or because the job is scaled down, is Failed for a moment
  before it is gone, with the code of a process that was told to end. With `RestartPod` for `PodFailed` alone,
  every drained trainer would count as a failure. No action does nothing; `ResumeJob` comes to it: a job that
  runs or is pending is looked at again, and what is missing is made when the pod is gone.
- There is no policy for `PodEvicted`, which is any pod that is gone: missing pods are made again anyway, and
  with a policy every scaling down would be answered by it.
- The job must not end by `TaskCompleted` of the trainers, the elastic task: it would end when those that are
  there are done. Parameter servers leave only when training is done, so they tell. Without this a trainer
  that never found room would keep the job Running. (With a `timeout` the action races with others of the
  controller, and is lost.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clickmill.submit.kubernetes.metadata import Object

FINAL_CODES = (2, 3, 4, 5)
"""Exit codes after which the job ends: configuration, data, damaged files, too many restarts."""
TERMINATED_CODE = 143
"""Of a launcher that was told to end because its pod is deleted."""
RETRY_SLACK = 3
"""Restarts beyond `max_restarts` that Volcano allows. Launchers end the job before; this is for pods in which
no launcher came so far, and for those that were made before the count rose."""


def max_retry(max_restarts: int) -> int:
    """`maxRetry` of a job: the failure that makes the count as large is the last one."""
    return max_restarts + 1 + RETRY_SLACK


def job_policies() -> list[Object]:
    """Of a job with parameter servers: only the pod that failed is made again."""
    return [
        *_final_policies(),
        {"action": "ResumeJob", "exitCode": TERMINATED_CODE},
        {"action": "RestartPod", "event": "PodFailed"},
    ]


def pserver_policies() -> list[Object]:
    """Of its parameter servers."""
    return [{"action": "CompleteJob", "event": "TaskCompleted"}]


def collective_policies() -> list[Object]:
    """Of a job of equal workers, which cannot lose one of them: all go back to the last checkpoint."""
    return [*_final_policies(), {"action": "RestartJob", "events": ["PodFailed", "PodEvicted"]}]


def _final_policies() -> list[Object]:
    return [{"action": "TerminateJob", "exitCode": code} for code in FINAL_CODES]
