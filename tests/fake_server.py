"""A small inference server for tests: streams words, counts like vLLM (or SGLang, llama.cpp), on a port of its own.

Every answer takes 4 rounds of 3 drafted tokens, of which 3, 1, 0 and 2 are accepted: 10 tokens with each round's own.
"""

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ACCEPTED = (3, 1, 0, 2)
DRAFTED = 3
WORDS = ["alpha beta gamma delta ", "epsilon zeta ", "eta ", "theta iota <b>kappa</b>"]
SPECULATION = {
    "mean_acceptance_length": 2.5,
    "draft_acceptance_rate": 0.5,
    "acceptance_histogram": [1, 1, 1, 1],
    "num_spec_steps": 4,
    "num_accepted_draft_tokens": 6,
    "num_draft_tokens": 12,
    "num_spec_tokens": 3,
}


class FakeServer(ThreadingHTTPServer):
    """Holds the counters; `round_s` is the time of a round, `kind` the engine it pretends to be."""

    daemon_threads = True

    def __init__(self, kind="vllm", round_s=0.02):
        super().__init__(("127.0.0.1", 0), Handler)
        self.kind, self.round_s = kind, round_s
        self.key = ""  # asked of every request under /v1, as vLLM does
        self.rounds = self.accepted = self.generated = 0
        self.kept = [0] * DRAFTED
        self.bodies = []
        self.gone = threading.Event()  # a reader left before the end
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def count(self, accepted):
        """One more round."""
        self.rounds, self.accepted = self.rounds + 1, self.accepted + accepted
        self.generated += accepted + 1
        for place in range(accepted):
            self.kept[place] += 1

    def metrics(self):
        """Return Prometheus text, with lines that are none among it."""
        if self.kind == "sglang":
            pairs = [
                ("sglang:spec_verify_calls_total", self.rounds),
                ("sglang:generation_tokens_total", self.generated),
            ]
            return "".join(f'{name}{{model_name="m",tp_rank="0"}} {value}\n' for name, value in pairs)
        prefix = {"vllm": "vllm:", "llama.cpp": "llamacpp:"}[self.kind]
        label = 'engine="0",model_name="a \\"b\\", {c}"'
        lines = ["# HELP vllm:x words", "# TYPE vllm:x counter", "garbage {", "vllm:odd NaN", ""]
        drafted = self.rounds * DRAFTED
        for name, value in (("drafts", self.rounds), ("draft_tokens", drafted), ("accepted_tokens", self.accepted)):
            lines.append(f"{prefix}spec_decode_num_{name}_total{{{label}}} {float(value)}")
        for place, value in enumerate(self.kept):
            lines.append(f'{prefix}spec_decode_num_accepted_tokens_per_pos_total{{{label},position="{place}"}} {value}')
        generated = "generation_tokens" if self.kind == "vllm" else "tokens_predicted"
        return "\n".join([*lines, f"{prefix}{generated}_total{{{label}}} {self.generated}"]) + "\n"


class Handler(BaseHTTPRequestHandler):
    """The four paths."""

    def log_message(self, *_):
        """Say nothing."""

    def _send(self, text, status=200, kind="text/plain"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def _locked(self):
        wanted = f"Bearer {self.server.key}" if self.server.key else None
        if wanted in (None, self.headers["Authorization"]):
            return False
        self._send("no", 401)
        return True

    def do_GET(self):
        """Metrics and models; a redirect and an endless text to be refused."""
        if self.path.startswith("/v1") and self._locked():
            return
        if self.path == "/metrics":
            self._send(self.server.metrics())
        elif self.path == "/v1/models":
            self._send(json.dumps({"data": [{"id": "tiny/model"}]}), kind="application/json")
        elif self.path == "/moved/metrics":
            self.send_response(302)
            self.send_header("Location", f"{self.server.url}/metrics")
            self.end_headers()
        elif self.path == "/long/metrics":
            self._send("x" * (9 << 20))
        else:
            self._send("no", 404)

    def do_POST(self):
        """Stream an answer, one event a round, the usage last."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self._locked():
            return
        self.server.bodies.append(asked)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        done = 0
        try:
            self.wfile.write(b": a comment\n\ndata: not json\n\n")
            for words, accepted in zip(WORDS, ACCEPTED, strict=True):
                time.sleep(self.server.round_s)
                self.server.count(accepted)
                done += accepted + 1
                choice = {"delta": {"content": words}} if "messages" in asked else {"text": words}
                self._event({"choices": [choice], "usage": {"completion_tokens": done}})
            self._event({"choices": [], "usage": {"completion_tokens": done}} | self._said(done))
            self.wfile.write(b"data: [DONE]\n\n")
        except OSError:
            self.server.gone.set()

    def _event(self, event):
        self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
        self.wfile.flush()

    def _said(self, done):
        if self.server.kind == "vllm":
            return {"metrics": {"speculative_decoding": SPECULATION}}
        if self.server.kind == "sglang":
            details = {"spec_verify_ct": 4, "spec_num_proposed_drafts": 12, "spec_num_correct_drafts": 6}
            return {"sglext": {"spec_tokens_details": details}}
        return {"timings": {"predicted_n": done, "draft_n": 12, "draft_n_accepted": 6}}


@contextmanager
def serving(kind="vllm", round_s=0.02):
    """Run a server for the length of a block."""
    server = FakeServer(kind, round_s)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
