from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest

from clickmill.train.chart import Line, chart, ticks


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 1.0), (0.7612, 0.7619), (-3, 5), (5, 5), (0, 0), (1e-9, 2e-9), (0, 123456)]
)
def test_ticks_are_ascending_and_span_the_range(low, high):
    marks = ticks(low, high)
    assert 2 <= len(marks) <= 12
    assert marks == sorted(marks)
    assert marks[0] <= low + 1e-12
    assert marks[-1] >= high - 1e-12


def test_a_chart_is_valid_xml_and_escapes_names():
    svg = chart(
        "a < b & c",
        [Line("<script>", [(0, 1), (1, 2)]), Line("other", [(0, 2)], is_marked=True)],
        x_label="step",
    )
    root = ElementTree.fromstring(svg)
    assert root.tag.endswith("svg")
    assert "<script>" not in svg


def test_points_that_are_not_finite_are_left_out():
    svg = chart("loss", [Line("x", [(0, math.nan), (1, 1.0), (2, math.inf), (3, 2.0)])], x_label="step")
    assert "nan" not in svg
    assert "inf" not in svg
    assert chart("loss", [Line("x", [(0, math.nan)])], x_label="step") == ""


def test_a_long_run_stays_a_small_picture_that_ends_at_its_last_point():
    svg = chart("loss", [Line("x", [(step, step % 7) for step in range(100_000)])], x_label="step")
    assert len(svg) < 20_000
    assert "last 4" in svg  # 99,999 % 7
