"""Watching a server: rates from its counters, text with its times, and addresses that are never fetched."""

import json
import threading

import pytest
from fake_server import SPECULATION, WORDS, serving

from playground.__main__ import main
from playground.lab.guarded_http import Server, WatchError, check_address
from playground.lab.server_metrics import Counters, counters, difference, parse
from playground.lab.server_stream import acceptance, chunks
from playground.lab.watch import MAX_METRICS, NO_COUNTERS, NO_SPECULATION, Piece, Question, Reading, Watch


def watched(server, **asked):
    watch = Watch(Question(server.url, **{"prompt": "hi"} | asked))
    return watch, list(watch.run(threading.Event()))


def test_prometheus_text_is_read_with_quoted_labels_and_garbage_left_out():
    text = 'a_total{x="1, }",y="\\"q\\""} 2e1 1700000000\n# a 1\nb 3\nbad {\nc NaN\nd +Inf\n'
    found = parse(text)
    assert [(item.name, item.value) for item in found] == [("a", 20.0), ("b", 3.0)]
    assert found[0].labels["x"] == "1, }"


def test_counters_of_several_engines_are_added():
    one = 'vllm:spec_decode_num_drafts_total{engine="%d"} %d\n'
    per_position = 'vllm:spec_decode_num_accepted_tokens_per_pos_total{position="%d"} %d\n'
    found = counters(one % (0, 5) + one % (1, 7) + per_position % (1, 2) + per_position % (0, 4))
    assert found.num_rounds == 12 and found.accepted_by_position == (4.0, 2.0)
    assert counters("process_cpu_seconds_total 1\n") is None


def test_a_difference_has_our_definitions():
    before = Counters("vllm", 10, 30, 9, (5, 3, 1), 19)
    rates = difference(before, Counters("vllm", 14, 42, 15, (8, 5, 2), 29))
    assert (rates.num_rounds, rates.num_drafted, rates.num_accepted, rates.num_generated) == (4, 12, 6, 10)
    assert rates.acceptance_length == pytest.approx(2.5) and rates.draft_efficiency == pytest.approx(0.5)
    assert rates.alpha == pytest.approx(6 / 9)  # three rounds refused one token each, one accepted all
    assert rates.acceptance_by_position == pytest.approx((3 / 4, 2 / 3, 1 / 2))


def test_alpha_is_not_claimed_where_drafts_were_shorter():
    zero = Counters("vllm", 0, 0, 0, (0, 0, 0), 0)
    assert difference(zero, Counters("vllm", 4, 8, 6, (3, 2, 1), 10)).alpha is None
    nothing = difference(zero, zero)
    assert nothing.acceptance_length is None and nothing.draft_efficiency is None and nothing.alpha is None


def test_a_restart_in_between_is_noticed():
    with pytest.raises(ValueError, match="restarted"):
        difference(Counters("vllm", 5), Counters("vllm", 1))


@pytest.mark.parametrize("kind", ["vllm", "sglang", "llama.cpp"])
def test_an_answer_is_streamed_and_its_acceptance_read(kind):
    with serving(kind) as server:
        server.count(2)  # traffic of before is not in the difference
        watch, items = watched(server)
        body = server.bodies[0]
    report = watch.report()
    assert report["text"] == "".join(WORDS) and report["model"] == "tiny/model" and report["num_tokens"] == 10
    assert report["server"]["num_rounds"] == 4 and report["server"]["acceptance_length"] == pytest.approx(2.5)
    assert report["request"]["num_accepted"] == 6 and report["request"]["draft_efficiency"] == pytest.approx(0.5)
    assert report["server"]["engine"] == kind
    assert ("return_spec_tokens_details" in body) == (kind == "sglang")
    assert ("continuous_usage_stats" in body["stream_options"]) == (kind != "llama.cpp")
    spent = report["pieces"][-1][0] - report["pieces"][0][0]
    assert report["tokens_per_second"] == pytest.approx(6 / spent)  # 4 of 10 came with the first piece
    assert isinstance(items[-1], Reading) and isinstance(items[0], Piece)
    json.dumps(report)


def test_vllms_own_record_of_the_request_is_kept_whole():
    with serving() as server:
        assert watched(server, chat=False)[0].report()["request"]["vllm"] == SPECULATION
        assert "prompt" in server.bodies[0]


def test_without_a_prompt_only_the_counters_are_followed():
    with serving() as server:
        watch, stop = Watch(Question(server.url)), threading.Event()
        for _ in watch.run(stop):
            server.count(1)
            if len(watch.readings) == 2:
                stop.set()
        assert not server.bodies
    assert watch.readings[-1].rates.num_rounds == 2 and watch.tokens_per_second > 0


def test_stopping_hangs_up():
    with serving(round_s=0.2) as server:
        stop = threading.Event()
        watch = Watch(Question(server.url, "hi"))
        for item in watch.run(stop):
            if isinstance(item, Piece):
                stop.set()
        assert len(watch.pieces) == 1
        assert server.gone.wait(5)


def test_a_server_without_metrics_still_has_its_speed_measured():
    with serving() as server:
        server.metrics = lambda: "python_info 1\n"
        watch, _ = watched(server)
        assert watch.notice == NO_COUNTERS and watch.tokens_per_second > 0 and watch.report()["server"] is None
        with pytest.raises(WatchError, match="nothing to watch"):
            watched(server, prompt="")


def test_a_server_without_speculation_is_told_how_to_switch_it_on():
    with serving() as server:
        server.metrics = lambda: f"vllm:generation_tokens_total {10 * len(server.bodies)}\n"
        watch = Watch(Question(server.url, "hi"))
        for _ in watch.run(threading.Event()):
            watch.acceptance = {}
    assert watch.notice == NO_SPECULATION and "--speculative-config" in watch.notice


def test_the_counters_of_before_and_after_are_kept():
    with serving() as server:
        server.count(2)
        watch, _ = watched(server)
    before, after = watch.report()["counters"]
    assert (before["num_rounds"], after["num_rounds"]) == (1, 5)
    assert (before["num_accepted"], after["num_accepted"]) == (2, 8)


def test_a_key_is_sent_and_shown_nowhere():
    with serving() as server:
        server.key = "sk-secret"
        with pytest.raises(WatchError, match=r"401.*API key"):
            watched(server)
        watch = Watch(Question(server.url, "hi"), "sk-secret")
        list(watch.run(threading.Event()))
    assert watch.report()["num_tokens"] == 10
    assert "sk-secret" not in repr(watch) + json.dumps(watch.report())
    with pytest.raises(WatchError, match="no API key") as caught:
        Server(server.url, 1.0, "sk-secret\r\nX-Other: 1")
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "::1", "10.1.2.3", "172.16.0.1", "192.168.0.7", "100.64.0.1", "fd12::1", "169.254.1.1"),
        *("::ffff:10.0.0.1", "::ffff:127.0.0.1", "64:ff9b::a00:1", "2002:a00:1::", "0.0.0.0", "198.18.0.1"),
    ],
)
def test_a_public_page_reaches_public_addresses_only(address):
    with pytest.raises(WatchError):
        check_address(address, public_only=True)


def test_a_public_page_may_still_watch_a_public_server_on_a_port_of_one():
    check_address("8.8.8.8", public_only=True)
    check_address("2606:4700::1", public_only=True)
    for url in ("http://localhost:8000", "http://127.0.0.1:8000", "http://2130706433", "http://[::1]:8000"):
        with pytest.raises(WatchError, match="open to everybody"):
            Server(url, 1.0, public_only=True)
    with pytest.raises(WatchError, match="Port 25"):
        Server("http://8.8.8.8:25", 1.0, public_only=True)


@pytest.mark.parametrize(
    "address",
    [
        *("169.254.169.254", "169.254.1.1", "fe80::1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"),
        *(
            "100.100.100.200",
            "168.63.129.16",
            "fd00:ec2::254",
            "224.0.0.1",
            "0.0.0.0",
            "::",
            "240.0.0.1",
            "2002:a9fe:a9fe::",
        ),
    ],
)
def test_link_local_and_metadata_addresses_are_refused(address):
    with pytest.raises(WatchError):
        check_address(address)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "10.1.2.3", "192.168.0.7", "fd12::1", "8.8.8.8"])
def test_own_and_public_addresses_are_not(address):
    check_address(address)


@pytest.mark.parametrize(
    "url",
    [
        *(
            "file:///etc/passwd",
            "ftp://127.0.0.1",
            "gopher://127.0.0.1:70",
            "127.0.0.1:8000",
            "",
            "http://",
            "http://[",
        ),
        *("http://user:pass@127.0.0.1:1", "http://2852039166", "http://[::ffff:169.254.169.254]", "http://127.0.0.1:x"),
        "http://169.254.169.254/latest/meta-data/",
    ],
)
def test_other_schemes_and_disguised_addresses_are_refused_before_anything_is_sent(url):
    with pytest.raises(WatchError):
        Server(url, 1.0)


def test_the_address_that_was_checked_is_the_one_connected_to():
    with serving() as server:
        target = Server(server.url, 2.0)
        target.host = "metadata.invalid"  # what the name says by then does not matter
        assert "vllm:" in target.get("/metrics", MAX_METRICS)


def test_redirects_long_answers_and_dead_ports_end_in_a_sentence():
    with serving() as server:
        for path, words in (("/moved", "answered 302"), ("/long", "more than")):
            with pytest.raises(WatchError, match=words):
                Server(server.url + path, 2.0).get("/metrics", MAX_METRICS)
        address = server.url
    with pytest.raises(WatchError, match="No server answers"):
        Server(address, 2.0).get("/metrics", MAX_METRICS)


def test_a_stream_in_any_pieces_is_read_and_a_line_without_end_is_not():
    text = b'data: {"choices": [{"text": "\xc3\xa9"}]}\r\n\r\ndata: [1]\n\ndata: [DONE]\n\ndata: {"choices": []}\n'
    for size in (1, 3, 1000):
        found = list(chunks(text[i : i + size] for i in range(0, len(text), size)))
        assert [chunk.text for chunk in found] == ["é"]
    with pytest.raises(ValueError, match="without end"):
        list(chunks(b"x" * (1 << 19) for _ in range(4)))


@pytest.mark.parametrize("event", [{}, {"metrics": None}, {"metrics": {"speculative_decoding": None}}, {"timings": 3}])
def test_a_server_that_says_nothing_of_acceptance_is_not_misread(event):
    assert acceptance(event) == {}


def test_the_command_writes_a_record(tmp_path, capsys):
    file = tmp_path / "watch.json"
    with serving() as server:
        assert main(["watch", "--url", f"{server.url}/v1", "--prompt", "hi", "--json", str(file)]) == 0
    assert json.loads(file.read_text())["server"]["num_accepted"] == 6
    shown = capsys.readouterr().out
    assert "alpha beta" in shown and "acceptance length 2.50" in shown
    assert main(["watch", "--url", "http://169.254.169.254", "--prompt", "hi"]) == 1
    assert main(["watch", "--url", server.url, "--seconds", "9999"]) == 2


def test_the_command_takes_the_key_from_the_environment(monkeypatch, capsys):
    monkeypatch.setenv("MY_KEY", "sk-secret")
    with serving() as server:
        server.key = "sk-secret"
        assert main(["watch", "--url", server.url, "--prompt", "hi", "--key-env", "MY_KEY", "--json", "-"]) == 0
        assert main(["watch", "--url", server.url, "--prompt", "hi"]) == 1
    assert "sk-secret" not in "".join(capsys.readouterr())
