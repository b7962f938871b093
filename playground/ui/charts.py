"""The live charts, as plain data: which columns of the log make which plotly figure.

The browser draws them from the log, so this file knows neither a run nor a figure object. Columns
are named in `render`. Colours are names of the page's colour variables, so that a change of theme
is a redraw.
"""

from playground.ui.text import CHART_TEXT
from playground.ui.text_export import WATCH_CHARTS

SPEEDUP_LINE = 1.0
TEXTS = CHART_TEXT | WATCH_CHARTS


def _trace(x: str, y: str, color: str, **style: object) -> dict:
    return {"x": x, "y": y, "color": color, "style": style}


def _chart(name: str, source: str, traces: list[dict], layout: dict, **extra: object) -> dict:
    return {"id": name, "source": source, "traces": traces, "layout": layout, **TEXTS[name], **extra}


def _stacked(column: str, color: str) -> dict:
    style = {
        "type": "scatter",
        "mode": "lines",
        "stackgroup": "ms",
        "line": {"width": 0.8, "shape": "hvh"},
        "hovertemplate": "%{y:.2f} ms",
    }
    return _trace("round", column, color, **style)


PERCENT = {"tickformat": ".0%", "range": [-0.04, 1.06], "dtick": 0.25}
POINTS = {"type": "scatter", "mode": "markers", "marker": {"size": 5, "opacity": 0.55}}
LINE = {"type": "scatter", "mode": "lines", "line": {"width": 2.25}, "connectgaps": True}
SHARE = {"hovertemplate": "%{y:.0%}"}
SINGLE = {"hovermode": "closest", "showlegend": False}


def chart_specs() -> list[dict]:
    """Return the charts in the order of the page."""
    return [_alpha(), _speedup(), _timeline(), _position()]


def _alpha() -> dict:
    each = _trace("round", "alpha", "muted", **POINTS, **SHARE)
    running = _trace("round", "running_alpha", "accepted", **LINE, **SHARE)
    return _chart("alpha", "rounds", [each, running], {"yaxis": PERCENT})


def _speedup() -> dict:
    trace = _trace("seconds", "speedup", "bonus", **LINE, hovertemplate="%{y:.2f}× at %{x:.1f} s<extra></extra>")
    layout = {"yaxis": {"rangemode": "tozero", "ticksuffix": "×"}, **SINGLE}
    return _chart("speedup", "rounds", [trace], layout, reference=SPEEDUP_LINE)


def _timeline() -> dict:
    traces = [_stacked(f"{name}_ms", name) for name in ("verify", "draft", "other")]
    return _chart("timeline", "rounds", traces, {"yaxis": {"rangemode": "tozero"}})


def _position() -> dict:
    hover = "%{customdata[0]} of %{customdata[1]} accepted<extra></extra>"
    trace = _trace("position", "acceptance", "accepted", type="bar", hovertemplate=hover)
    layout = {"yaxis": PERCENT, "xaxis": {"dtick": 1}, "bargap": 0.35, **SINGLE}
    return _chart("position", "positions", [trace | {"customdata": ["accepted", "tested"]}], layout)


def watch_chart_specs() -> list[dict]:
    """Return the charts of a watched server; their columns are named in `watch_log`."""
    speed = [
        _trace("seconds", "answer_speed", "accepted", **LINE, hovertemplate="%{y:.1f}"),
        _trace("seconds", "traffic_speed", "muted", **POINTS, hovertemplate="%{y:.1f}"),
    ]
    length = _now_and_so_far("length", hovertemplate="%{y:.2f}")
    efficiency = _now_and_so_far("efficiency", **SHARE)
    place = _trace("position", "acceptance", "accepted", type="bar", hovertemplate="%{y:.0%}<extra></extra>")
    from_zero = {"yaxis": {"rangemode": "tozero"}}
    by_place = {"yaxis": PERCENT, "xaxis": {"dtick": 1}, "bargap": 0.35, **SINGLE}
    return [
        _chart("watch-speed", "rounds", speed, from_zero),
        _chart("watch-length", "rounds", length, from_zero),
        _chart("watch-efficiency", "rounds", efficiency, {"yaxis": PERCENT}),
        _chart("watch-position", "positions", [place], by_place),
    ]


def _now_and_so_far(column: str, **style: object) -> list[dict]:
    now = _trace("seconds", f"{column}_now", "muted", **POINTS, **style)
    return [now, _trace("seconds", column, "accepted", **LINE, **style)]
