"""The Role that we hand out is the one that we ask for."""

from __future__ import annotations

from pathlib import Path

import yaml

from clickmill.submit.kubernetes import rights
from clickmill.submit.kubernetes.account import role

from .plans import plan_of

SUBMITTER = Path(__file__).parents[4] / "deploy" / "k8s" / "submitter.yaml"


def _granted() -> set[tuple[str, str, str]]:
    submitter = yaml.safe_load(SUBMITTER.read_text())
    return {
        (group, resource, verb)
        for rule in submitter["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_submitter_has_the_rights_that_are_asked_for_and_no_others() -> None:
    asked = {
        (right.kind.group, "/".join(filter(None, (right.kind.plural, right.part))), right.verb)
        for right in (*rights.SHARED, *rights.VOLCANO, *rights.PLAIN)
    }
    assert asked == _granted()


def test_submitter_has_every_right_that_a_job_is_given() -> None:
    given = {
        (group, resource, verb)
        for rule in role(plan_of())["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert given <= _granted()
