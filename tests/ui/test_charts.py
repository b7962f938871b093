"""The chart specifications name only columns that the log has."""

from playground.metrics import RunMetrics
from playground.ui.charts import chart_specs
from playground.ui.render import ROUND_COLUMNS, positions


def test_every_trace_reads_columns_that_exist():
    columns = {"rounds": set(ROUND_COLUMNS), "positions": set(positions(RunMetrics()))}
    for spec in chart_specs():
        for trace in spec["traces"]:
            wanted = {trace["x"], trace["y"], *trace.get("customdata", [])}
            assert wanted <= columns[spec["source"]]


def test_there_are_the_four_charts_of_the_page_each_with_words():
    specs = chart_specs()
    assert [spec["id"] for spec in specs] == ["alpha", "speedup", "timeline", "position"]
    assert all(spec["title"] and spec["caption"] and spec["empty"] for spec in specs)
    assert all(len(spec["names"]) == len(spec["traces"]) for spec in specs)


def test_the_speedup_chart_has_the_line_of_plain_decoding():
    assert {spec["id"]: spec.get("reference") for spec in chart_specs()}["speedup"] == 1.0
