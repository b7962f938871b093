"""The live charts, as plain data: which columns of the log make which plotly figure.

The browser draws them from the log, so this file knows neither a run nor a figure object. Columns
are named in `render`. Colours are names of the page's colour variables, so that a change of theme
is a redraw.
"""

from playground.ui.text import CHART_TEXT

SPEEDUP_LINE = 1.0


def _trace(x: str, y: str, color: str, **style: object) -> dict:
    return {"x": x, "y": y, "color": color, "style": style}


def _chart(name: str, source: str, traces: list[dict], layout: dict, **extra: object) -> dict:
    return {"id": name, "source": source, "traces": traces, "layout": layout, **CHART_TEXT[name], **extra}


def _stacked(column: str, color: str) -> dict:
    style = {
        "type": "scatter",
        "mode": "lines",
        "stackgroup": "ms",
        "line": {"width": 0.8, "shape": "hvh"},
        "hovertemplate": "%{y:.2f} ms",
    }
    return _trace("round", column, color, **style)


def chart_specs() -> list[dict]:
    """Return the charts in the order of the page."""
    percent = {"tickformat": ".0%", "range": [-0.04, 1.06], "dtick": 0.25}
    points = {"type": "scatter", "mode": "markers", "marker": {"size": 5, "opacity": 0.55}}
    line = {"type": "scatter", "mode": "lines", "line": {"width": 2.25}, "connectgaps": True}
    share = {"hovertemplate": "%{y:.0%}"}
    position_hover = {"hovertemplate": "%{customdata[0]} of %{customdata[1]} accepted<extra></extra>"}
    return [
        _chart(
            "alpha",
            "rounds",
            [
                _trace("round", "alpha", "muted", **points, **share),
                _trace("round", "running_alpha", "accepted", **line, **share),
            ],
            {"yaxis": percent},
        ),
        _chart(
            "speedup",
            "rounds",
            [_trace("seconds", "speedup", "bonus", **line, hovertemplate="%{y:.2f}× at %{x:.1f} s<extra></extra>")],
            {"yaxis": {"rangemode": "tozero", "ticksuffix": "×"}, "hovermode": "closest", "showlegend": False},
            reference=SPEEDUP_LINE,
        ),
        _chart(
            "timeline",
            "rounds",
            [
                _stacked("verify_ms", "verify"),
                _stacked("draft_ms", "draft"),
                _stacked("other_ms", "other"),
            ],
            {"yaxis": {"rangemode": "tozero"}},
        ),
        _chart(
            "position",
            "positions",
            [
                _trace(
                    "position",
                    "acceptance",
                    "accepted",
                    type="bar",
                    textposition="none",
                    **position_hover,
                )
                | {"customdata": ["accepted", "tested"]}
            ],
            {
                "yaxis": percent,
                "xaxis": {"dtick": 1},
                "bargap": 0.35,
                "hovermode": "closest",
                "showlegend": False,
            },
        ),
    ]
