"""The Theory tab: words with the numbers in them, charts that agree, and the last run as a point."""

from pathlib import Path

import pytest

from playground import trace
from playground.lab.simulator import RULES, parse_weights, simulate_rounds, simulate_token
from playground.lab.why import explain
from playground.ui.theory_charts import gamma_chart, length_chart, surface_chart, token_chart
from playground.ui.theory_tab import FIRST_P, FIRST_Q, last_point, rounds_pictures, token_pictures

EXAMPLE = Path(__file__).parents[1] / "traces" / "version-1.jsonl"


def test_the_formula_is_shown_with_its_numbers():
    words, *charts = rounds_pictures(0.7, 4, 0.1, 0.02, None)
    assert "2.773 tokens per round" in words and "1.87x" in words and "Best gamma: 4" in words
    assert len(charts) == 3
    assert "do not speculate" in rounds_pictures(0.2, 4, 0.9, 0.1, None)[0]
    assert "no alpha breaks even" in rounds_pictures(0.2, 4, 1.0, 0.5, None)[0]


def test_the_charts_show_the_simulated_and_the_closed_form():
    bars, marks = length_chart(simulate_rounds(0.7, 4, 0.1, 0.02)).data
    assert list(bars.y) == pytest.approx(list(marks.y), abs=0.01)
    line, points = gamma_chart(0.7, 4, 0.1, 0.02).data
    assert list(points.y) == pytest.approx(list(line.y[::2]), rel=0.01)
    assert len(surface_chart(0.7, 4, 0.1, 0.02, None).data) == 2
    assert "measured" in surface_chart(0.7, 4, 0.1, 0.02, last_point(explain(trace.load(EXAMPLE)))).data[-1].name
    assert len(token_chart(simulate_token(parse_weights(FIRST_P), parse_weights(FIRST_Q))).data) == 2 + len(RULES)


def test_the_first_weights_show_every_wrong_rule_off():
    world = simulate_token(parse_weights(FIRST_P), parse_weights(FIRST_Q))
    assert all((value > 0.05) == (rule != "right") for rule, value in world.variation.items())


def test_weights_that_are_none_are_said_to_be():
    table, _ = token_pictures("<b>", "1 2")
    assert "something else" in table and "<b>" not in table
    assert "same tokens" in token_pictures("1 2 3", "1 2")[0]


def test_the_last_run_lies_where_its_figures_say():
    found = explain(trace.load(EXAMPLE))
    point = last_point(found)
    assert (point["alpha"], point["c"], point["speedup"]) == (found.alpha, found.c, found.speedup)
    assert last_point(None) is None
