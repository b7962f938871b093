"""Traces: the same record and text as the run that wrote them, old versions readable, strangers' files refused."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_checkpoints import save_llama

from playground import trace
from playground.__main__ import main
from playground.events import Failed, Finished, Logits, Progress, to_json
from playground.report import Recorder

VERSION_1 = Path(__file__).parent / "traces" / "version-1.jsonl"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A run saved by the command line, with its record."""
    root = tmp_path_factory.mktemp("trace")
    target = str(save_llama(root / "target", initializer_range=0.3))
    command = ["run", "--target", target, "--precision", "float32", "--prompt", "The quick brown fox", "--quiet"]
    command += ["--proposer", "lookahead", "--max-new-tokens", "24", "--trace", str(root / "run.jsonl")]
    assert main([*command, "--json", str(root / "run.json")]) == 0
    return root


def test_a_replay_gives_the_record_of_the_run_byte_for_byte_and_needs_no_torch(saved):
    code = "import sys; from playground.__main__ import main; code = main(sys.argv[1:]); "
    code += "assert 'torch' not in sys.modules and 'gradio' not in sys.modules; sys.exit(code)"
    out = saved / "again.json"
    done = subprocess.run(
        [sys.executable, "-c", code, "replay", str(saved / "run.jsonl"), "--json", str(out)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert out.read_bytes() == (saved / "run.json").read_bytes()
    assert json.loads(out.read_text())["text"] in done.stdout
    assert "acceptance length" in done.stdout


def test_events_survive_the_file(saved):
    events = trace.load(saved / "run.jsonl")
    assert isinstance(events[-1], Finished)
    text = (saved / "run.jsonl").read_text()
    assert trace.to_text(events, trace.created_of(text)) == text
    assert [event for batch in trace.batches(events, 5) for event in batch] == events


def test_a_trace_of_version_1_stays_readable():
    recorder = Recorder()
    for event in trace.load(VERSION_1):
        recorder(event)
    report = recorder.report()
    assert report["finish_reason"] == "length"
    assert report["num_committed"] == len(report["token_ids"]) == 24
    assert trace.created_of(VERSION_1.read_text()) == "2026-12-01T00:00:00Z"


def lines(*more):
    """A header and the lines of the example."""
    return [*VERSION_1.read_text().splitlines(), *more]


def changed(index, **fields):
    found = lines()
    found[index] = json.dumps(json.loads(found[index]) | fields)
    return "\n".join(found)


def place(event):
    return next(number for number, line in enumerate(lines()) if json.loads(line).get("event") == event)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no trace"),
        ("hello", "no trace"),
        ("[1]", "no trace"),
        ('{"trace": true}', "no version"),
        ('{"trace": 99}', "versions up to"),
        ('{"trace": 1}', "holds no run"),
        ('{"trace": 1}\n{"event": "Exploit"}', "Line 2"),
        ('{"trace": 1}\n' + "[" * 100_000, "Line 2"),
        ('{"trace": 1}\n' + "x" * (trace.MAX_LINE_BYTES + 1), "too long"),
        (changed(place("Proposed"), round=7), "count from 1"),
        (changed(place("Verified"), round=7), "before it was proposed"),
        (changed(place("Started"), prompt_text=3), "Expected str"),
        ("\n".join(lines(lines()[-1])), "over already"),
        ("\n".join([lines()[0], *[lines()[place("Started")]] * 2]), "second run"),
    ],
)
def test_what_is_no_trace_is_refused_in_a_sentence(text, words):
    with pytest.raises(ValueError, match=words):
        trace.from_text(text)


def test_indices_must_point_to_something():
    found = lines()
    number = next(n for n, line in enumerate(found) if json.loads(line).get("nodes"))
    record = json.loads(found[number])
    record["nodes"][0]["parent"] = 5
    found[number] = json.dumps(record)
    with pytest.raises(ValueError, match="not there"):
        trace.from_text("\n".join(found))
    number = next(n for n, line in enumerate(lines()) if json.loads(line).get("tested"))
    record = json.loads(lines()[number])
    record["tested"][0]["node"] = 99
    found = lines()
    found[number] = json.dumps(record)
    with pytest.raises(ValueError, match="never drafted"):
        trace.from_text("\n".join(found))


def with_logits(**fields):
    """The example with logits of its first round before its end."""
    found = lines()
    count = len(json.loads(found[place("Proposed")])["nodes"])
    row = {"ids": [1, 2], "texts": ["a", "b"], "logits": [1.5, 0.5], "rest_logits": [-1.0], "rest_counts": [9]}
    record = {"event": "Logits", "round": 1, "target": [row | fields] * (count + 1), "draft": [row] * count}
    return [*found[:-1], json.dumps(record), found[-1]]


def test_logits_are_read_back_and_refused_where_they_do_not_fit():
    assert any(isinstance(event, Logits) for event in trace.from_text("\n".join(with_logits())))
    for wrong in ({"ids": [1]}, {"rest_counts": [0]}, {"rest_counts": []}, {"logits": [float("nan"), 0.5]}):
        with pytest.raises(ValueError, match="logit"):
            trace.from_text("\n".join(with_logits(**wrong)))
    with pytest.raises(ValueError, match="do not belong"):
        trace.from_text("\n".join(with_logits()).replace('"Logits", "round": 1', '"Logits", "round": 99'))


def test_a_file_that_is_too_large_or_not_text_is_refused(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(ValueError, match="UTF-8"):
        trace.load(tmp_path / "a")
    monkeypatch.setattr(trace, "MAX_BYTES", 10)
    for read in (lambda: trace.load(VERSION_1), lambda: trace.from_text("x" * 11)):
        with pytest.raises(ValueError, match="larger"):
            read()


def test_a_failed_run_replays_as_failed(tmp_path, capsys):
    trace.save([Progress("loading", "x", None), Failed("Too little memory.", "Take less.")], tmp_path / "f.jsonl")
    assert main(["replay", str(tmp_path / "f.jsonl")]) == 1
    assert "Too little memory. Take less." in capsys.readouterr().err
    assert main(["replay", str(tmp_path / "none.jsonl")]) == 2
    assert to_json(Failed("a", "b")) in trace.to_text([Failed("a", "b")])
