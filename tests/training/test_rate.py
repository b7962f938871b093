"""The line that says how far a long job is."""

from playground.training.session import Rate


def test_no_time_left_is_told_before_there_is_a_rate():
    lines = []
    rate = Rate(100, "Writing text", lines.append)
    rate(40)
    assert lines == ["Writing text: 40 of 100 tokens"]
    rate(50)
    assert "min left" in lines[-1]
