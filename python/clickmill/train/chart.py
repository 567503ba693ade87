"""Line charts as SVG text: no dependency, sharp at any size, readable in light and dark pages."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH, HEIGHT = 720, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 34, 36
_MAX_POINTS = 600
COLOURS = ("#2a78d6", "#d9652b", "#2d9a5f", "#8a56c9")


@dataclass(frozen=True)
class Line:
    """One curve; `is_marked` draws its points, for curves of few points."""

    name: str
    points: Sequence[tuple[float, float]]
    is_marked: bool = False


def chart(title: str, lines: Sequence[Line], *, x_label: str) -> str:
    """SVG of all lines over one pair of axes; an empty text where no line has a finite point."""
    lines = [Line(line.name, _finite(line.points), line.is_marked) for line in lines]
    lines = [line for line in lines if line.points]
    if not lines:
        return ""
    xs = [x for line in lines for x, _ in line.points]
    ys = [y for line in lines for _, y in line.points]
    x_ticks, y_ticks = ticks(min(xs), max(xs)), ticks(min(ys), max(ys))
    scale = _Scale((x_ticks[0], x_ticks[-1]), (y_ticks[0], y_ticks[-1]))
    body = [f'<text class="title" x="{_LEFT}" y="18">{escape(title)}</text>', _legend(lines)]
    body += [_x_tick(scale, tick) for tick in x_ticks]
    body += [_y_tick(scale, tick) for tick in y_ticks]
    body.append(f'<text x="{WIDTH - _RIGHT}" y="{HEIGHT - 4}" text-anchor="end">{escape(x_label)}</text>')
    body += [_curve(scale, line, COLOURS[index % len(COLOURS)]) for index, line in enumerate(lines)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title, quote=True)}">{STYLE}{"".join(body)}</svg>'
    )


STYLE = (
    "<style>text{font:12px system-ui,sans-serif;fill:#555}.title{font-weight:600;font-size:14px;fill:#222}"
    ".grid{stroke:#e3e3e3}.curve{fill:none;stroke-width:1.8;stroke-linejoin:round}"
    "@media(prefers-color-scheme:dark){text{fill:#aaa}.title{fill:#eee}.grid{stroke:#383838}}</style>"
)


def ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round numbers that span [low, high]: at least two, about `wanted`."""
    if high <= low:
        margin = abs(low) * 0.05 or 0.5
        low, high = low - margin, high + margin
    rough = (high - low) / wanted
    magnitude = 10.0 ** math.floor(math.log10(rough))
    step = next(m * magnitude for m in (1.0, 2.0, 2.5, 5.0, 10.0) if m * magnitude >= rough)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(index * step, 12) for index in range(first, max(last, first + 1) + 1)]


@dataclass(frozen=True)
class _Scale:
    x_range: tuple[float, float]
    y_range: tuple[float, float]

    def x(self, value: float) -> float:
        low, high = self.x_range
        return _LEFT + (value - low) / (high - low) * (WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        low, high = self.y_range
        return HEIGHT - _BOTTOM - (value - low) / (high - low) * (HEIGHT - _TOP - _BOTTOM)


def _finite(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    return [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]


def _thin(points: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    """At most `_MAX_POINTS` points, the last one always among them: a long run stays a small page."""
    stride = math.ceil(len(points) / _MAX_POINTS)
    thinned = list(points[::stride])
    if thinned[-1] != points[-1]:
        thinned.append(points[-1])
    return thinned


def _curve(scale: _Scale, line: Line, colour: str) -> str:
    points = _thin(line.points)
    path = " ".join(f"{scale.x(x):.1f},{scale.y(y):.1f}" for x, y in points)
    marks = ""
    if line.is_marked or len(points) == 1:
        marks = "".join(
            f'<circle cx="{scale.x(x):.1f}" cy="{scale.y(y):.1f}" r="3.5" fill="{colour}">'
            f"<title>{escape(line.name)} {_number(y)} at {_number(x)}</title></circle>"
            for x, y in points
        )
    last = f"{escape(line.name)}: last {_number(points[-1][1])}"
    return (
        f'<polyline class="curve" stroke="{colour}" points="{path}"><title>{last}</title></polyline>{marks}'
    )


def _legend(lines: Sequence[Line]) -> str:
    if len(lines) < 2 and not lines[0].name:
        return ""
    parts = []
    x = WIDTH - _RIGHT
    for index, line in reversed(list(enumerate(lines))):
        x -= 7 * len(line.name) + 26
        colour = COLOURS[index % len(COLOURS)]
        parts.append(
            f'<rect x="{x}" y="9" width="12" height="3" fill="{colour}"/>'
            f'<text x="{x + 17}" y="15">{escape(line.name)}</text>'
        )
    return "".join(parts)


def _x_tick(scale: _Scale, tick: float) -> str:
    x = scale.x(tick)
    return f'<text x="{x:.1f}" y="{HEIGHT - _BOTTOM + 17}" text-anchor="middle">{_number(tick)}</text>'


def _y_tick(scale: _Scale, tick: float) -> str:
    y = scale.y(tick)
    return (
        f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{_number(tick)}</text>'
    )


def _number(value: float) -> str:
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            divisor = 1e3 if unit == "k" else limit
            return f"{value / divisor:g}{unit}"
    return f"{value:.5g}"
