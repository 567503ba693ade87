"""`clickmill report RUN`: one HTML page with the curves of a run and what bounds it, from its journals."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

from clickmill.errors import DataError
from clickmill.metrics import BINARY_METRICS, REGRESSION_METRICS
from clickmill.store import durable
from clickmill.train.bound import Bound, find_bound
from clickmill.train.chart import Line, chart
from clickmill.train.journal import read_journal
from clickmill.train.traces import read_trainers

if TYPE_CHECKING:
    from pathlib import Path

    from clickmill.train.bound import Stages

_PAGE = Template(files("clickmill.train").joinpath("report.html").read_text(encoding="utf-8"))


def bound_of(run_folder: Path) -> Bound:
    """What bounds a run: from the journals of its trainers, or from its own where it is one process."""
    trainers = read_trainers(run_folder)
    return find_bound(trainers or {"trainer": read_journal(run_folder)})


def write_report(run_folder: Path, out: Path | None = None) -> Path:
    """Write the page of a run, and its first curve as a picture beside it; returns the path of the page.

    `report.html` and `report.svg` in the folder of the run by default.
    """
    events = read_journal(run_folder)
    if not events:
        raise DataError(
            f"the journal of `{run_folder}` is empty", hint="the run ended before its first batch"
        )
    target = out or run_folder / "report.html"
    name = "/".join(run_folder.resolve().parts[-2:])
    durable.replace_file(target, render(events, name, bound_of(run_folder)).encode())
    charts = _charts(events)
    if charts:
        # The first curve is the one that people paste elsewhere.
        durable.replace_file(target.with_suffix(".svg"), charts[0].encode())
    return target


def render(events: list[dict[str, Any]], name: str, bound: Bound | None = None) -> str:
    """HTML text of the page; `bound` where it does not follow from the events alone."""
    start: dict[str, Any] = next((e for e in events if e["event"] == "run_start"), {})
    ends = [e for e in events if e["event"] == "pass_end"]
    notes = [e["text"] for e in events if e["event"] == "note"]
    subtitle = (
        f"model {start.get('model', '?')}, {start.get('num_parameters', 0):,} dense parameters, "
        f"{start.get('num_workers', 1)} workers"
    )
    return _PAGE.substitute(
        title=escape(f"Run {name}"),
        subtitle=escape(subtitle),
        cards="".join(_cards(events, ends)),
        charts="".join(f"<figure>{svg}</figure>" for svg in _charts(events)),
        bound=_bound(bound or find_bound({"trainer": events})),
        passes=_pass_table(ends),
        notes=("<h2>Notes</h2><ul>" + "".join(f"<li>{escape(n)}</li>" for n in notes) + "</ul>")
        if notes
        else "",
    )


def _cards(events: list[dict[str, Any]], ends: list[dict[str, Any]]) -> list[str]:
    intervals = [e for e in events if e["event"] == "interval"]
    cards = [("passes", str(len(ends)))]
    if ends:
        last = ends[-1]
        cards.append(("samples in a pass", f"{last['samples']:,}"))
        cards += _metric_cards(ends)
        cards.append(("samples per second", f"{last['samples'] / max(last['seconds'], 1e-9):,.0f}"))
        for table, rows in last["table_rows"].items():
            cards.append((f"rows in table {table}", f"{rows:,}"))
        cards.append(("bad lines", f"{last['bad_lines']:,}"))
    elif intervals:
        cards.append(("samples so far", f"{intervals[-1]['samples']:,}"))
    return [
        f'<div class="card"><b>{escape(value)}</b><span>{escape(label)}</span></div>'
        for label, value in cards
    ]


def _metric_cards(ends: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """The metric that decides, and those that the model has derived."""
    last = ends[-1]
    name, best_of = ("auc", max) if "auc" in last["train"] else ("rmse", min)
    cards = [(f"train {name.upper()}, last pass", _number(last["train"][name]))]
    found = [e["validation"][name] for e in ends if e["validation"].get(name) is not None]
    if found:
        cards.append((f"best validation {name.upper()}", _number(best_of(found))))
    part = "validation" if last["validation"] else "train"
    for own in last[part]:
        if own not in BINARY_METRICS and own not in REGRESSION_METRICS:
            cards.append((f"{part} {own.replace('_', ' ')}, last pass", _number(last[part][own])))
    return cards


def _charts(events: list[dict[str, Any]]) -> list[str]:
    intervals = [e for e in events if e["event"] == "interval"]
    ends = [e for e in events if e["event"] == "pass_end"]

    def metric(name: str) -> list[tuple[float, float]]:
        return [(e["step"], e["metrics"][name]) for e in intervals if e["metrics"].get(name) is not None]

    def validation(name: str) -> list[tuple[float, float]]:
        return [(e["step"], e["validation"][name]) for e in ends if e["validation"].get(name) is not None]

    def field(name: str) -> list[tuple[float, float]]:
        return [(e["step"], e[name]) for e in intervals if e[name] is not None]

    # The first batch of a pass waits for the reader, which fills its buffers.
    speed = [(e["step"], e["samples_per_second"]) for e in intervals if e["batch"] > 0]
    charts = [
        chart(
            "AUC",
            [
                Line("train", metric("auc")),
                Line("last 20 batches", metric("batch_auc")),
                Line("validation", validation("auc"), is_marked=True),
            ],
            x_label="step",
        ),
        chart(
            "Log loss" if metric("logloss") else "Loss",
            [
                Line("batch", field("loss")),
                Line("train", metric("logloss")),
                Line("validation", validation("logloss"), is_marked=True),
            ],
            x_label="step",
        ),
        chart(
            "Error (RMSE)",
            [Line("train", metric("rmse")), Line("validation", validation("rmse"), is_marked=True)],
            x_label="step",
        ),
        chart(
            "Calibration: clicks / predicted clicks",
            [Line("train", metric("copc")), Line("validation", validation("copc"), is_marked=True)],
            x_label="step",
        ),
        chart("Samples per second", [Line("", speed)], x_label="step"),
        chart("Learning rate", [Line("", field("learning_rate"))], x_label="step"),
    ]
    return [svg for svg in charts if svg]


def _pass_table(ends: list[dict[str, Any]]) -> str:
    if not ends:
        return "<p>No pass has ended yet.</p>"
    names = [name for name in ends[0]["train"] if name != "count"]
    parts = ("train", "validation") if ends[0]["validation"] else ("train",)
    # The two of a metric side by side: they are what is compared.
    columns = [(name, part) for name in names for part in parts]
    head = "".join(f"<th>{escape(name)} {part}</th>" for name, part in columns)
    rows = []
    for end in ends:
        cells = "".join(_cell(end[part].get(name)) for name, part in columns)
        rows.append(f"<tr><td>{end['pass_number']}</td><td>{end['seconds']:.1f}</td>{cells}</tr>")
    table = f"<table><tr><th>pass</th><th>seconds</th>{head}</tr>{''.join(rows)}</table>"
    return f'<div class="wide">{table}</div>'


def _bound(bound: Bound) -> str:
    """The sentence, and the shares of the run and of its trainers."""
    if bound.run.bound is None:
        return f"<p>{escape(bound.words())}</p>"
    stages = list(bound.run.shares)
    head = "".join(f"<th>{escape(stage)}</th>" for stage in stages)

    def row(name: str, own: Stages) -> str:
        cells = "".join(f"<td>{own.shares.get(stage, 0.0):.1%}</td>" for stage in stages)
        return f"<tr><td>{escape(name)}</td><td>{escape(own.bound or '-')}</td>{cells}</tr>"

    rows = [row("run", bound.run)]
    if len(bound.trainers) > 1:
        rows += [row(name, own) for name, own in bound.trainers.items()]
    table = f"<table><tr><th></th><th>bound by</th>{head}</tr>{''.join(rows)}</table>"
    return f'<p>{escape(bound.words())}</p><div class="wide">{table}</div>'


def _cell(value: float | None) -> str:
    return f"<td>{'' if value is None else _number(value)}</td>"


def _number(value: float | None) -> str:
    """`-` for what was not a number: a share of nothing."""
    return "-" if value is None else f"{value:.5f}"
