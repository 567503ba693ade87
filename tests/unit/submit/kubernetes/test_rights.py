"""The Role that we hand out is the one that we ask for."""

from __future__ import annotations

from pathlib import Path

import yaml

from clickmill.submit.kubernetes.account import role
from clickmill.submit.kubernetes.check import rights

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


def test_submitter_has_every_right_that_is_checked() -> None:
    asked = {
        (kind.group, kind.plural, verb)
        for kind, verbs in (*rights.SHARED, *rights.VOLCANO, *rights.PLAIN)
        for verb in verbs
    }
    asked |= {("", f"{plural}/{part}", verb) for plural, part, verb in rights.SUBRESOURCES}
    assert asked <= _granted()


def test_submitter_has_every_right_that_a_job_is_given() -> None:
    given = {
        (group, resource, verb)
        for rule in role(plan_of())["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert given <= _granted()
