"""The charts of the Theory tab as plotly figures. Values come from the simulator; knows no components.

Backgrounds are clear and lines mid-toned, so that one figure reads in light and dark.
"""

from typing import Any

from playground.lab.simulator import Rounds, TokenWorld, simulate_rounds
from playground.theory import MAX_GAMMA, predicted_speedup
from playground.ui.text_theory import BY_FORMULA, CHARTS, LAST_RUN, MEASURED, RULE_NAMES, SIMULATED

INK, GRID = "#7c8899", "rgba(124,136,153,.22)"
BLUE, AMBER, VIOLET, RED, GREY = "#2f87c4", "#d99a1b", "#9a6bd0", "#d9643c", "#8b97a8"
COLORS = {
    "right": BLUE,
    "argmax-agrees": RED,
    "argmax-after-rejection": AMBER,
    "target-after-rejection": VIOLET,
    "softmax-scored-argmax": GREY,
}
STEPS = 41
MAX_C = 1.0


def _figure(traces: list, name: str, **layout: object) -> Any:
    import plotly.graph_objects as go

    figure = go.Figure(traces)
    figure.update_layout(
        title={"text": CHARTS[name], "font": {"size": 13.5}, "x": 0.02, "y": 0.97},
        height=290,
        margin={"l": 48, "r": 16, "t": 62, "b": 42},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": INK, "size": 12, "family": "IBM Plex Sans, system-ui, sans-serif"},
        legend={"orientation": "h", "y": 1.12, "x": 0, "font": {"size": 11.5}},
        bargap=0.28,
        **layout,
    )
    figure.update_xaxes(gridcolor=GRID, zerolinecolor=GRID)
    figure.update_yaxes(gridcolor=GRID, zerolinecolor=GRID)
    return figure


def length_chart(found: Rounds) -> Any:
    """Shares of rounds by accepted length: bars simulated, marks by formula."""
    import plotly.graph_objects as go

    places = list(range(len(found.shares)))
    bars = go.Bar(x=places, y=found.shares, name=SIMULATED, marker_color=BLUE)
    marks = {"symbol": "line-ew-open", "size": 16, "line": {"width": 2.5, "color": AMBER}}
    formula = go.Scatter(x=places, y=found.formula, mode="markers", name=BY_FORMULA, marker=marks)
    return _figure(
        [bars, formula], "length", yaxis={"tickformat": ".0%"}, xaxis={"dtick": 1 if len(places) < 10 else 2}
    )


def gamma_chart(alpha: float, gamma: int, c: float, width: float) -> Any:
    """Speedup by gamma: a line by formula, simulated points, the chosen gamma marked."""
    import plotly.graph_objects as go

    places = list(range(MAX_GAMMA + 1))
    line = [predicted_speedup(alpha, g, c, 1 + width * g) for g in places]
    points = [simulate_rounds(alpha, g, c, width).speedup for g in places[::2]]
    traces = [
        go.Scatter(x=places, y=line, name=BY_FORMULA, line={"color": AMBER, "width": 2.5}),
        go.Scatter(x=places[::2], y=points, mode="markers", name=SIMULATED, marker={"color": BLUE, "size": 7}),
    ]
    figure = _figure(traces, "gamma", yaxis={"ticksuffix": "×", "rangemode": "tozero"})
    figure.add_hline(y=1, line={"dash": "dash", "color": INK, "width": 1})
    figure.add_vline(x=gamma, line={"color": VIOLET, "width": 1.5})
    return figure


def surface_chart(alpha: float, gamma: int, c: float, width: float, last: dict | None) -> Any:
    """Predicted speedup over alpha and c, the chosen point, and the last real run where there is one."""
    import plotly.graph_objects as go

    alphas = [i / (STEPS - 1) for i in range(STEPS)]
    costs = [MAX_C * i / (STEPS - 1) for i in range(STEPS)]
    values = [[predicted_speedup(a, gamma, cost, 1 + width * gamma) for a in alphas] for cost in costs]
    scale = [[0, "#c4441c"], [0.5, "#e9edf2"], [1, "#0072b2"]]
    highest = max(2.0, max(map(max, values)))
    heat = go.Contour(
        x=alphas,
        y=costs,
        z=values,
        colorscale=scale,
        zmin=0,
        zmax=2,
        contours={"start": 0.5, "end": highest, "size": 0.5, "showlabels": True, "labelfont": {"color": "#333"}},
        colorbar={"ticksuffix": "×", "thickness": 10},
        hovertemplate="alpha %{x:.2f}, c %{y:.2f}: %{z:.2f}×<extra></extra>",
    )
    chosen = {"color": "#111", "size": 11, "symbol": "x"}
    traces = [heat, go.Scatter(x=[alpha], y=[c], mode="markers", name="chosen here", marker=chosen)]
    if last:
        mark = {"color": VIOLET, "size": 12, "line": {"color": "#fff", "width": 1.5}}
        text = f"{last['speedup']:.2f}× {MEASURED}"
        traces.append(
            go.Scatter(
                x=[last["alpha"]], y=[last["c"]], mode="markers", name=f"{LAST_RUN} ({text})", marker=mark, text=[text]
            )
        )
    axes = {"xaxis": {"title": "alpha", "range": [0, 1]}, "yaxis": {"title": "c", "range": [0, MAX_C]}}
    figure = _figure(traces, "surface", **axes)
    return figure.update_layout(legend={"y": 1.02, "yanchor": "bottom"}, margin={"t": 78})  # room for two lines


def token_chart(world: TokenWorld) -> Any:
    """What comes out under each rule, beside p and q."""
    import plotly.graph_objects as go

    tokens = [chr(ord("A") + index) for index in range(len(world.p))]
    traces = [
        go.Bar(x=tokens, y=world.p, name="p", marker={"color": "rgba(0,0,0,0)", "line": {"color": INK, "width": 2}}),
        go.Bar(x=tokens, y=world.q, name="q", marker={"color": GRID}),
    ]
    for rule, shares in world.sampled.items():
        traces.append(go.Bar(x=tokens, y=shares, name=RULE_NAMES[rule], marker_color=COLORS[rule]))
    figure = _figure(traces, "token", barmode="group", yaxis={"tickformat": ".0%"})
    figure.update_layout(height=380, legend={"y": -0.12, "yanchor": "top"}, margin={"t": 40, "b": 120})
    return figure
