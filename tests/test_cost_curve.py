"""Cost curves: where they bend, what a batch costs, when speculation stops paying; measured on a tiny target."""

from itertools import pairwise

import pytest
from fakes import lean

from playground.lab.cost_curve import LeftOut, measure_curves
from playground.lab.cost_model import WIDTHS, Curve, PassCost, Point, stops_paying


def curve(*times, context=128, widths=WIDTHS):
    points = tuple(Point(width, ms, ms, ms) for width, ms in zip(widths, times, strict=False))
    return Curve("float32", context, 3, points)


def test_the_bend_is_the_width_from_which_every_pass_costs_more():
    assert curve(10, 10, 11, 12, 16, 30, 60).bend == 16
    assert curve(10, 10, 11, 12, 16, 30, 60).free == 8
    assert curve(10, 16, 11, 12, 14, 30, 60).bend == 32  # one disturbed point is no bend
    assert curve(10, 10, 10, 10, 10, 10, 15).bend is None
    assert curve(10, 10, 10, 10, 10, 10, 15).free == 64


def test_times_lie_on_the_line_between_widths_and_beyond_the_last_ones():
    measured = curve(10, 12, 20, 40, 80, 160, 320)
    assert [measured.ms(width) for width in (0.5, 1, 1.5, 3, 64, 96)] == [10, 10, 11, 16, 320, 480]
    assert curve(10, 9).ms(4) == 9  # a curve that falls by chance is not extrapolated downwards


def test_a_pass_over_a_batch_shares_weights_but_not_attention():
    def truth(rows, sequences, context):
        return 10 + 2 * rows + 0.01 * rows * context  # each row attends to one context

    curves = [
        Curve("float32", length, 3, tuple(Point(w, truth(w, 1, length), 0, 0) for w in WIDTHS))
        for length in (100, 1000)
    ]
    cost = PassCost(curves)
    for rows, sequences, context in ((1, 1, 100), (8, 1, 500), (16, 4, 300), (96, 16, 1000)):
        assert cost.ms(rows, sequences, context) == pytest.approx(truth(rows, sequences, context))
    reads = [
        Curve("float32", length, 3, tuple(Point(w, 10 + w + 0.05 * length, 0, 0) for w in WIDTHS))
        for length in (100, 1000)
    ]  # keys are read once per sequence, whatever the rows
    assert PassCost(reads).ms(16, 8, 200) == pytest.approx(10 + 16 + 8 * 0.05 * 200)
    assert PassCost(reads[:1]).ms(16, 8, 999) == pytest.approx(10 + 16 + 5)  # one context tells no attention
    with pytest.raises(ValueError, match="measured"):
        PassCost([])


def test_speculation_is_worth_most_for_one_sequence_and_fades():
    cost = PassCost([curve(10, 10, 10, 10, 20, 40, 80)])
    found = [(batch, cost.speedup(0.7, 4, 0.05, batch, 128)) for batch in (1, 2, 4, 8, 16)]
    assert found[0][1] == pytest.approx((1 - 0.7**5) / 0.3 / (4 * 0.05 + 1), rel=0.01)
    assert all(later <= earlier + 1e-9 for (_, earlier), (_, later) in pairwise(found))
    assert stops_paying(found) == 8
    assert stops_paying([(1, 1.2), (2, 1.1)]) is None
    assert stops_paying([(1, 0.9), (2, 0.8)]) == 1


def test_curves_come_cycle_by_cycle_and_leave_the_target_as_it_was(model):
    target, news = lean(model), []
    target.extend([1, 2, 3])
    found = list(measure_curves(target, "float32", (16, 128, 500), 2, lambda *parts: news.append(parts)))
    assert next(item for item in found if isinstance(item, LeftOut)).what == "500 tokens"
    curves = [item for item in found if isinstance(item, Curve)]
    assert [(item.context, item.num_cycles) for item in curves] == [(16, 1), (128, 1), (16, 2), (128, 2)]
    for item in curves:
        assert tuple(point.width for point in item.points) == WIDTHS
        assert all(0 < point.low <= point.ms <= point.high for point in item.points)
    assert target.ids == [1, 2, 3]
    assert all(0 <= fraction <= 1 for _, _, fraction in news)


@pytest.mark.parametrize(("contexts", "cycles"), [((), 1), ((16,), 0), ((0,), 1)])
def test_nothing_to_measure_is_refused(model, contexts, cycles):
    with pytest.raises(ValueError, match="at least one"):
        list(measure_curves(lean(model), "float32", contexts, cycles, lambda *parts: None))
