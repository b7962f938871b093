"""Cost and load tab: charts that are escaped and conclude, plans from the page, progress as a bar, files."""

import re

import pytest

from playground.config import RunSettings
from playground.events import Progress
from playground.lab.cost_curve import LeftOut
from playground.lab.cost_model import WIDTHS, Curve, Point
from playground.lab.load_plan import LoadResult, LoadRun
from playground.lab.load_table import Assumed
from playground.ui.cost_tab import plan_of, progress_bar
from playground.ui.cost_view import CostView, record
from playground.ui.line_chart import Series, line_chart, ticks_up_to
from playground.ui.text_cost import BEYOND, CHARTS, EMPTY

BASE = RunSettings("-", gamma=4)


def curve(precision="bfloat16", context=128):
    return Curve(precision, context, 3, tuple(Point(w, 10 + w / 2, 9 + w / 2, 12 + w / 2) for w in WIDTHS))


def result(batch, verify_ms=500.0):
    plain = LoadRun(batch, 40, 40, 40, 100.0, (0,) * batch * 40, 0, 0, 0.0, 400.0, 0.0)
    drafted = LoadRun(batch, 40, 20, 60, 100.0, (1,) * batch * 20, 20, 10, 4.0, verify_ms, 0.0)
    return LoadResult(batch, (plain, plain), (drafted,), 1.3, 1.0)


def view(*values):
    found = CostView(Assumed(0.7, 4, 0.0))
    return found, found(list(values))


def test_an_empty_picture_says_so():
    assert EMPTY in view()[1]
    assert "Left out: int4: no &lt;kernel&gt;" in view(LeftOut("int4", "no <kernel>"))[1]


def test_curves_make_two_charts_with_where_they_bend_and_what_to_expect():
    _, html = view(curve(), curve("int8", 512))
    assert html.count("<figure") == 2
    assert "it bends at 16 tokens (1.7 passes over one)" in html
    assert "Expected, bfloat16, 128 tokens:" in html and "Expected, int8, 512 tokens:" in html
    assert BEYOND.format(num=64) in html
    assert html.count('class="ring"') == 2
    again, newer = CostView(Assumed(0.7, 4, 0.0)), curve()
    assert again([curve(), newer]).count('class="line"') == 2  # a newer cycle replaces the older one
    assert again.curves == [newer]


def test_other_assumptions_redraw_the_expected_speedup_only():
    found, before = view(curve(), result(1))
    found.assumed = Assumed(0.0, 4, 0.5)
    after = found.html()
    assert "speculation does not pay" in after and after != before
    assert "where 4 were asked for" in after
    found.assumed = Assumed(0.0, 9, 0.5)
    assert "where 4 were asked for" in found.html()  # what was drafted stays


def test_load_makes_three_more_charts_and_a_table():
    found, html = view(curve(), result(1, 300.0), result(4))
    assert html.count("<figure") == 5
    for title, _ in CHARTS.values():
        assert f"<b>{title}</b>" in html
    assert "speculation stops paying at B = 4" in html
    assert "B = 4: 100 tokens/s in all plainly, 79 speculatively." in html
    assert "B = 1: each sequence waits 10 ms for a token plainly, 8 speculatively" in html
    assert html.count('class="line"') == 1 + 1 + 2 + 3 + 3
    assert html.count("<tr>") == 3
    kept = record(found)
    assert kept["curves"][0]["bend"] == 16 and len(kept["load"]) == 2


def test_a_chart_is_escaped_and_keeps_inside_its_frame():
    lines = [Series("<b>", "accepted", [(1, 0.0), (64, 130.0)], [(0.0, 1.0), (100.0, 149.0)], 1, 64)]
    html = line_chart(("<i>", "c"), "a<b", lines, "<", ["x < y"], 1.0)
    assert "<b>&lt;i&gt;</b>" in html and "<i>" not in html and "x &lt; y" in html
    heights = [float(value) for value in re.findall(r'cy="([\d.]+)"', html)]
    assert all(0 <= value <= 236 for value in heights)
    assert "130&lt; (100 – 149)" in html
    assert line_chart(("t", "c"), "a", [Series("one", "plain", [(4, 2.0)])], "", [])


@pytest.mark.parametrize("top", [0.003, 0.9, 1.0, 7, 33, 99, 1200])
def test_ticks_are_few_round_and_reach_the_top(top):
    ticks = ticks_up_to(top)
    assert ticks[0] == 0 and ticks[-1] >= top * (1 - 1e-9)
    assert 3 <= len(ticks) <= 7


def test_a_plan_comes_from_the_page_or_is_refused():
    assert plan_of(BASE, [], [], 32, 1) is None
    plan = plan_of(BASE, [4, 1], ["chat", "edit"], 32, 2)
    assert plan.batches == (1, 4) and len(plan.workload) == 4 and plan.cycles == 2
    assert plan.workload[0] != plan.workload[1]
    with pytest.raises(ValueError, match="task"):
        plan_of(BASE, [1], [], 32, 1)
    with pytest.raises(ValueError, match="eagle"):
        plan_of(RunSettings("-", proposer="eagle"), [1], ["chat"], 32, 1)


def test_progress_has_a_bar_where_its_share_is_known():
    assert 'value="0.250"' in progress_bar(Progress("measuring", "a <b>", 0.25))
    assert "<b>" not in progress_bar(Progress("measuring", "a <b>", 0.25))
    assert "<progress" not in progress_bar(Progress("waiting", "Preparing", None))
