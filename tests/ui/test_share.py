"""Recordings and links: shipped ones replay, strangers' files are refused, settings survive an address."""

from pathlib import Path
from urllib.parse import parse_qsl

import pytest

from playground import trace
from playground.config import RunSettings
from playground.events import Failed, Verified
from playground.ui.links import MAX_LENGTH, query_of, settings_of_query
from playground.ui.recordings import described, first_recording, opened_recording, shipped, shipped_recording, title_of
from playground.ui.runs import MAX_EVENTS, Run, Runs

EXAMPLE = Path(__file__).parents[1] / "traces" / "version-1.jsonl"


def test_every_shipped_recording_replays_and_says_what_it_is():
    names = [name for _, name in shipped()]
    assert names
    for name in names:
        log = shipped_recording(name)[0]
        assert '"e":"recording"' in log and '"e":"end"' in log
        assert log.endswith("\n")
    assert first_recording()[0] == shipped_recording(names[0])[0]
    assert (Path(__file__).parents[2] / "static" / "traces" / names[0]).stat().st_size < 400_000


def test_a_name_that_is_not_shipped_is_refused():
    for name in ("../../etc/passwd", "none.jsonl", ""):
        with pytest.raises(ValueError, match="no such recording"):
            shipped_recording(name)[0]


def test_an_opened_trace_tells_model_machine_and_date(tmp_path):
    events = trace.load(EXAMPLE)
    words = described(events, "2026-12-01T00:00:00Z")
    assert words.startswith("Recording: Target itself · tiny in float32") and words.endswith("2026-12-01")
    log = opened_recording(str(EXAMPLE), "abc")[0]
    assert '"id":"abc"' in log and words.split(" · ")[1] in log
    (tmp_path / "bad.jsonl").write_text("hello")
    with pytest.raises(ValueError, match="no trace"):
        opened_recording(str(tmp_path / "bad.jsonl"), "x")[0]
    assert described([Failed("a", "b")], "") == "Recording"


def test_markup_in_a_stranger_s_trace_stays_text(tmp_path):
    text = EXAMPLE.read_text().replace("tiny", "<script>alert(1)</script>")
    (tmp_path / "evil.jsonl").write_text(text)
    assert "<script>" not in opened_recording(str(tmp_path / "evil.jsonl"), "x")[0]


def test_titles_come_from_file_names():
    assert title_of(Path("2-story-with-a-copy.jsonl")) == "story with a copy"
    assert title_of(Path("plain.jsonl")) == "plain"


def test_what_a_run_says_is_kept_up_to_a_limit():
    runs = Runs()
    assert runs.events("me") == []
    run = runs.start("me")
    event = Failed("a", "b")
    run.keep([event])
    assert runs.events("me") == [event]
    run.keep([event] * MAX_EVENTS)
    assert runs.events("me") is None
    run.keep([event])
    assert isinstance(run, Run) and runs.events("me") is None


def test_settings_survive_an_address():
    settings = RunSettings(
        "a & b\n=?", proposer="eagle", gamma=7, temperature=0.5, adapter=False, stop_strings=("x", "y"), tree_nodes=9
    )
    query, left_out = query_of(settings)
    found, unknown = settings_of_query(dict(parse_qsl(query)))
    assert RunSettings(**found) == settings
    assert not left_out and not unknown
    assert "top_p" not in query  # what is as usual is not said


def test_what_is_too_long_is_left_out_and_said():
    query, left_out = query_of(RunSettings("x", corpus="y" * (MAX_LENGTH + 1)))
    assert left_out == ["corpus"] and "corpus" not in query


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"gamma": "99"}, "gamma must be"),
        ({"gamma": "true"}, "gamma cannot be"),
        ({"gamma": "["}, "gamma cannot be"),
        ({"adapter": "1"}, "adapter cannot be"),
        ({"stop_strings": "[1]"}, "stop_strings cannot be"),
        ({"proposer": "magic"}, "proposer must be one of"),
    ],
)
def test_an_address_is_checked_like_everything_else(query, words):
    with pytest.raises(ValueError, match=words):
        settings_of_query(query)


def test_unknown_names_are_told_and_the_pages_own_are_not():
    assert settings_of_query({"__theme": "dark", "foo": "1", "gamma": "3"}) == ({"gamma": 3}, ["foo"])
    assert settings_of_query({}) == ({}, [])


def test_a_recording_has_rounds():
    assert any(isinstance(event, Verified) for event in trace.load(EXAMPLE))
