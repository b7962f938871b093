"""Wording of the Export tab: snippets for other engines, metrics for their tools, watching a running server.

Plain strings only, as in `text`.
"""

EXPORT_NAME = "Export"
EXPORT_INTRO = "The settings of the Generate tab, ready to paste for an engine that serves models."
ENGINE = "Engine"
SNIPPET = "Snippet"
SETTING_LINE = "{proposer}, {gamma} · target {target}, {precision} · {sampling}"
GREEDY, SAMPLED = "greedy", "temperature {temperature:g}"
GAMMA_OF = "γ {gamma}"
NO_GAMMA = "no drafting"
NOT_THERE = "No snippet: {reason}"
NAMES_FROM, CHECKED_IN = "Names of fields and options as in {source}.", "As of {source}."

METRICS_TITLE = "The newest run in vLLM's schema"
METRICS_INTRO = (
    "What a vLLM server started with --per-request-spec-decode-metrics detailed answers, from your newest run here: "
    "tools that read its answers read this. mean_acceptance_length is the acceptance length, draft_acceptance_rate the "
    "draft efficiency; rounds that drafted nothing are left out, as there."
)
METRICS_LABEL = "usage and metrics"
METRICS_FILE = "vllm-metrics.json"
REFRESH, DOWNLOAD = "Take the newest run", "Download JSON"
NO_RUN = "There is no run yet: press Generate first."
TOO_LONG = "The newest run is too long to be kept whole, so it has no metrics here."

WATCH_TITLE = "Watch a running server"
WATCH_INTRO = (
    "Where one machine is not enough: ask a vLLM, SGLang or llama.cpp server one question, or only follow the traffic "
    "it has. Its speculative counters are read before, during and after; others' requests in between are counted too. "
    "Temperature and chat template are those of the Generate tab."
)
URL, URL_HINT, LOCAL_URL = "Server", "http or https; /v1 at its end may stay", "http://127.0.0.1:8000"
MODEL, MODEL_HINT = "Model", "Empty: the first it offers"
KEY, KEY_HINT = "API key", "If it wants one; neither kept nor logged"
PROMPT, PROMPT_HINT = "Prompt", "Empty: the prompt of the Generate tab"
MAX_TOKENS, SECONDS = "Longest answer, tokens", "At most, seconds"
ONLY_COUNTERS, ONLY_COUNTERS_HINT = "Ask nothing", "Only follow the counters while others use the server"
START, STOP, SAVE = "Start", "Stop", "Save as JSON"
WATCH_FILE = "watch.json"
WATCH_EMPTY = "Nothing has been watched yet."
CONNECTING = "Asking the server"
WATCHING = "Watching, {seconds:.0f} s"
STOPPING = "Stopping at its next sign of life"
DONE, STOPPED = "Done after {seconds:.1f} s", "Stopped after {seconds:.1f} s"
FOUND = "{engine} at {url}"
NO_ENGINE = "an engine not known here"
ANSWER, NO_ANSWER = "Answer", "No text came."
NONE = "—"
FIGURES = (
    ("acceptance_length", "Acceptance length", ".2f", "tokens per round"),
    ("draft_efficiency", "Draft efficiency", ".0%", "accepted ÷ drafted"),
    ("tokens_per_second", "Tokens per second", ".1f", ""),
    ("time_to_first_s", "First piece after", ".2f", "seconds"),
)
ALONE = "this answer alone: {value}"
SPEED_OF = {True: "of this answer, after its first piece", False: "of all traffic"}
ALPHA = "Alpha, accepted ÷ tested: {value:.3f}."
NO_ALPHA = "Alpha is not known here: the counters do not say how many drafted tokens were tested."
COUNTERS = "Counters of the server"
COLUMNS = ("Counter", "before", "after", "difference")
COUNTER_NAMES = {
    "num_rounds": "rounds (drafts)",
    "num_drafted": "drafted tokens",
    "num_accepted": "accepted tokens",
    "num_generated": "generated tokens",
}
AT_POSITION = "accepted at position {position}"

SPEED_TEXT = {
    "title": "Tokens per second",
    "caption": "from real traffic",
    "names": ["this answer so far", "all traffic, between readings"],
    "xtitle": "seconds",
    "empty": "The server counts no tokens as it goes.",
}
LENGTH_TEXT = {
    "title": "Acceptance length",
    "caption": "tokens per round, the target's own included",
    "names": ["between readings", "since the start"],
    "xtitle": "seconds",
    "empty": "The server counts no rounds.",
}
EFFICIENCY_TEXT = {
    "title": "Draft efficiency",
    "caption": "accepted / drafted",
    "names": ["between readings", "since the start"],
    "xtitle": "seconds",
    "empty": "The server does not count drafted tokens.",
}
PLACES_TEXT = {
    "title": "Acceptance by draft position",
    "caption": "where the position before was accepted",
    "names": ["acceptance"],
    "xtitle": "position in the draft",
    "empty": "The server does not count by position.",
}
WATCH_CHARTS = {
    "watch-speed": SPEED_TEXT,
    "watch-length": LENGTH_TEXT,
    "watch-efficiency": EFFICIENCY_TEXT,
    "watch-position": PLACES_TEXT,
}
