"""Lists of precisions with figures, the table under them, and a measurement as the page sees it."""

from html import unescape

from browser.double import Double, Option
from browser.double_speeds import FAILURE

from playground.events import Failed, Progress
from playground.speeds import Speed, Step
from playground.ui.notes import about_title, speed_number, speeds_table
from playground.ui.precisions import measuring, speed_updates, with_speeds

OPTIONS = [
    Option("float32", "float32 (exact, largest)"),
    Option("bfloat16", "bfloat16"),
    Option("nf4", "NF4 (4-bit)", False, "no kernel"),
]


def speed(precision, figure, model="m"):
    return Speed(model, precision, 1, "a CPU", "2.0", figure, "2026-11-29T12:00:00+00:00")


def test_a_label_says_what_was_measured_here_and_otherwise_stays_as_it_is():
    assert with_speeds(OPTIONS, {"bfloat16": speed("bfloat16", 44.13)}) == [
        ("float32 (exact, largest)", "float32"),
        ("bfloat16 · 44 tokens/s measured here", "bfloat16"),
    ]
    assert with_speeds(OPTIONS, {"float32": speed("float32", 4.13)})[0][0] == "float32 · 4.1 tokens/s measured here"


def test_figures_have_two_digits_that_matter():
    assert [speed_number(figure) for figure in (0.42, 4.44, 9.96, 44.4, 181.6)] == ["0.4", "4.4", "10", "44", "182"]


def test_draft_and_copy_show_the_figures_of_their_own_model():
    double = Double()
    double.known = {("a", "bfloat16"): 44.0, ("b", "bfloat16"): 99.0}
    target, draft, copy, table = speed_updates(double.options(), "a", "b", double.speeds)
    assert ("bfloat16 · 44 tokens/s measured here", "bfloat16") in target["choices"]
    assert ("bfloat16 · 99 tokens/s measured here", "bfloat16") in draft["choices"]
    assert ("bfloat16 · 44 tokens/s measured here", "bfloat16") in copy["choices"]
    assert copy["choices"][0][1] == "auto"
    assert "<b>44</b>" in table


def test_nothing_is_shown_of_what_was_not_measured():
    table = speeds_table(OPTIONS, {"bfloat16": speed("bfloat16", 44.13)})
    assert table.count("not measured here yet") == 1
    assert "2026-11-29" in table
    assert "1 thread on a CPU, torch 2.0" in table
    assert "NF4" not in table
    assert speeds_table([], {}) == ""


def test_the_block_names_what_does_not_run_here():
    assert about_title(OPTIONS) == "About precisions · not available here: NF4 (4-bit)"
    assert about_title(OPTIONS[:2]) == "About precisions"


def test_a_measurement_shows_the_state_of_each_precision_and_why_one_has_no_figure():
    double = Double()
    double.step_s = 0.0
    options = double.options().precisions
    shown = list(measuring(double.measure("m", "bfloat16"), options, lambda: double.speeds("m")))
    assert ">loading<" in shown[0]
    assert "measuring 50%" in shown[1]
    assert "<b>20</b>" in shown[2]
    assert "could not be measured" in shown[-1]
    assert "<b>44</b>" in shown[-1]
    assert "<b>fails" not in shown[-1]
    assert FAILURE in unescape(shown[-1])


def test_a_figure_just_measured_is_shown_even_where_it_cannot_be_remembered():
    step = Step("float32", "measured", tokens_per_second=19.6)
    assert "<b>20</b>" in speeds_table(OPTIONS, {}, {"float32": step})


def test_waiting_failing_and_breaking_are_told_under_the_table():
    def batches(*events):
        yield list(events)
        raise RuntimeError("secret")

    said = [Progress("waiting", "Waiting: place 1 of 1 in the queue"), Failed("No model <i>.", "Choose another.")]
    for event, words in zip(said, ("place 1 of 1", "No model &lt;i&gt;. Choose another."), strict=True):
        shown = list(measuring(batches(event), OPTIONS, dict))
        assert words in shown[0]
        assert "secret" not in shown[-1]
        assert "mistake of its own" in shown[-1]


def test_leaving_a_measurement_ends_it():
    double = Double()
    shown = measuring(double.measure("m"), double.options().precisions, dict)
    next(shown)
    assert double.measuring == 1
    shown.close()
    assert double.measuring == 0
