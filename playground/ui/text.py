"""All wording of the page: titles, labels, definitions, hints, reasons; about proposers in `text_proposers`.

One place, so that the same thing is called the same everywhere. Words follow the project's glossary.
Plain strings only: no gradio, no numbers that a run would have to measure.
"""

TITLE = "Speculative Decoding Playground"
TAGLINE = "A proposer guesses several tokens, the target checks them in one pass. Same distribution, fewer passes."

LABELS = {
    "prompt": "Prompt",
    "preset": "Presets",
    "generate": "Generate",
    "stop": "Stop",
    "measure": "Measure tokens/s here",
    "proposer": "Proposer",
    "ngram_min": "Smallest n-gram",
    "ngram_max": "Largest n-gram",
    "draft": "Draft model",
    "draft_precision": "Draft precision",
    "quantized_precision": "Precision of the copy",
    "min_share": "Smallest share",
    "greedy_draft": "Greedy drafting",
    "exit_layers": "Layers that draft",
    "adapter": "Trained adapter",
    "tree_nodes": "Tree size",
    "tree_top_k": "Branches per node",
    "window": "Window",
    "ngram_size": "n-gram size",
    "num_guesses": "Guesses",
    "guess_tree": "All guesses at once",
    "typical_epsilon": "Typical acceptance: lossy",
    "noise_alpha": "Chance that a guess is right",
    "corpus": "Text to look up in, optional",
    "gamma": "Gamma",
    "gamma_policy": "Policy for gamma",
    "confidence_threshold": "Confidence threshold",
    "target": "Target",
    "target_precision": "Precision",
    "temperature": "Temperature",
    "top_k": "Top-k",
    "top_p": "Top-p",
    "seed": "Seed",
    "max_new_tokens": "New tokens at most",
    "stop_strings": "Stop strings",
    "chat_template": "Chat template",
    "system_prompt": "System prompt",
}
HINTS = {
    "target": "A model of the list, a Hub id or a local folder",
    "draft": "A model of the list, a Hub id or a local folder; one with another tokenizer is translated",
    "min_share": "Drafting ends when the counts make a draft less likely",
    "greedy_draft": "Always the likeliest token; matters above temperature 0",
    "exit_layers": "More layers guess better and cost more",
    "adapter": "Off: the raw state of the last of these layers",
    "tree_nodes": "Drafted tokens per round; 0 drafts a chain",
    "tree_top_k": "Of a tree; also how many nodes are expanded per layer",
    "window": "Tokens guessed ahead in every pass",
    "ngram_size": "Longer guesses, more rows in the window",
    "num_guesses": "Kept and tried per token",
    "guess_tree": "Off: the latest guess only, as a chain",
    "noise_alpha": "Alpha at temperature 0",
    "typical_epsilon": "0 is off and exact; above 0 likely guesses stay without a draw, and the text drifts",
    "corpus": "Besides prompt and output",
    "gamma": "Most asked per round",
    "confidence_threshold": "The draft's own probability of a token",
    "temperature": "0 is greedy",
    "top_k": "0 is off",
    "top_p": "1 is off",
    "stop_strings": "One on each line; \\n stands for a line break",
    "chat_template": "Off: the target simply continues the prompt",
    "system_prompt": "Empty: what the model's own template says",
}
PLACEHOLDERS = {"prompt": "Type a prompt, or choose a preset above", "corpus": "Paste a source the answer may repeat"}
SECTIONS = {"sampling": "Sampling and length", "output": "Template and stops"}

READY = "Engine ready"
SETTINGS_TOGGLE = "Settings"
THEME_TOGGLE = "Switch between light and dark"
UNAVAILABLE_SUFFIX = " (not available here)"
AUTO_PRECISION = "Fastest here"
SUGGESTED = "The largest pair that fits this machine: {label}."
ABOUT_PRECISIONS = "About precisions"
NOT_HERE = "not available here:"
SPEED_LABEL = "{name} · {speed} tokens/s measured here"
SPEEDS_TITLE = "Plain decoding, tokens/s measured here. Other work on this machine lowers a figure."
NOT_MEASURED = "not measured here yet"
NOT_MEASURABLE = "could not be measured"
MEASURING = {"downloading": "downloading", "converting": "converting", "loading": "loading"}
MEASURING_LAST = "measuring"  # every other stage
MEASURED_ON = "{threads} on {device_name}, torch {torch}"
NOT_STARTED = "Not started"
BROKEN = "The playground made a mistake of its own; the run was ended."
BROKEN_HINT = "The server's log says where. Your settings are untouched and the next run starts afresh."
API_DESCRIPTION = (
    "Run speculative decoding and stream its log: JSON lines, each time the whole log so far. The last line of a "
    "finished log has 'text', 'token_ids', 'figures' and 'reason'. Values out of range are refused with one sentence."
)

FIGURES = [
    {
        "id": "speedup",
        "label": "Speedup, measured",
        "definition": "Tokens per second of this run divided by tokens per second of plain decoding: same engine, same "
        "prompt, same precision, both measured, prompt processing apart. Below 1 means slower.",
    },
    {
        "id": "alpha",
        "label": "Alpha",
        "definition": "Accepted tokens divided by tested tokens: how often a judged guess is kept. Guesses that were "
        "never judged, such as those behind a rejection, do not count. "
        "Siblings in a tree share a position and count once.",
    },
    {
        "id": "acceptance_length",
        "label": "Acceptance length",
        "definition": "Tokens added to the output per target pass, the target's own token included. Plain decoding is "
        "exactly 1.",
    },
    {
        "id": "tokens_per_second",
        "label": "Tokens per second",
        "definition": "Output tokens per second of decoding: drafting, checking and everything between. Prompt "
        "processing and the baseline measurement are apart.",
    },
]

KIND_NAMES = {
    "accepted": "accepted",
    "rejected": "rejected",
    "untested": "untested",
    "residual": "residual",
    "bonus": "bonus",
    "plain": "plain",
}
KIND_DEFINITIONS = {
    "accepted": "Drafted by the proposer and kept by the target",
    "rejected": "Drafted, judged and refused by the target",
    "untested": "Drafted but never judged: behind a rejection, on a branch not taken, or past the end",
    "residual": "Drawn from the part of the target's distribution the draft missed, after a rejection",
    "bonus": "The target's own token after every drafted one was accepted",
    "plain": "The target's own token in a round without a draft",
}

CHART_TEXT = {
    "alpha": {
        "title": "Alpha",
        "caption": "accepted / tested, by round",
        "names": ["this round", "run so far"],
        "xtitle": "round",
        "empty": "No drafted token was tested in this run.",
    },
    "speedup": {
        "title": "Speedup",
        "caption": "measured, run so far; dashed: plain decoding",
        "names": ["speedup"],
        "xtitle": "seconds of decoding",
        "empty": "No baseline was measured in this run.",
    },
    "timeline": {
        "title": "Where a round's time goes",
        "caption": "milliseconds, stacked",
        "names": ["verify", "draft", "other"],
        "xtitle": "round",
        "empty": "No round yet.",
    },
    "position": {
        "title": "Acceptance by draft position",
        "caption": "accepted / tested, where reached",
        "names": ["acceptance"],
        "xtitle": "position in the draft",
        "empty": "No drafted token was tested in this run.",
    },
}

# What the view says; the browser fills in {braces}.
VIEW_WORDS = {
    "inspect": "Inspect this round",
    "why": "Why?",
    "view": "Result of the run",
    "strip": "Output tokens. Arrow keys move, Enter pins the details, Escape closes them.",
    "no_run": "No run yet",
    "idle": "Press Generate: the answer appears here token by token, coloured by who wrote it.",
    "starting": "Starting",
    "waiting": "Waiting for the first token",
    "running": "Round {rounds} · {tokens} of at most {limit} tokens",
    "reasons": {
        "end_token": "Finished: the target wrote its end token",
        "stop_string": "Finished: a stop string appeared",
        "length": "Finished: the limit of new tokens was reached",
        "context_full": "Finished: the target's context is full",
        "stopped": "Stopped: what was made is kept",
        "failed": "The run failed",
        "lost": "The run ended without a word from the server; what arrived is kept",
    },
    "summary": "{tokens} tokens in {rounds} rounds, {seconds} s",
    "prompt_time": "prompt {tokens} tokens, {seconds} s",
    "split": "verify {verify} · draft {draft} · other {other}",
    "lossy": "Lossy: typical acceptance.",
    "drift": "This text is not the target's. Drift {value}: the mean total variation between what each token came "
    "from and the target's distribution, 0 when exact.",
    "efficiency": "draft efficiency {value}",
    "none": "—",
    "hide_rejected": "Hide rejected",
    "show_spaces": "Spaces and newlines",
    "copy": "Copy text",
    "copied": "Copied",
    "copy_failed": "Could not copy",
    "empty_output": "No token was written.",
    "close": "Close details",
    "of_tested": "{accepted} of {tested} tested tokens",
    "of_positions": "{accepted} of {tested} tested positions",
    "nothing_tested": "nothing tested yet",
    "per_pass": "tokens per target pass",
    "plain_speed": "plain decoding {value}",
    "no_baseline": "no baseline yet",
    "against_plain": "against plain decoding",
    "slower": "slower than plain decoding",
    "token_id": "token id",
    "round": "round",
    "position": "position",
    "p": "target p",
    "p_residual": "p in the residual",
    "trial": "try {turn} of {tried}",
    "q": "draft q",
    "u": "drawn u",
    "overlap": "overlap Σ min(p, q)",
    "rule": "Accepted when u · q < p",
    "top_target": "Target",
    "top_draft": "Draft",
    "top_residual": "Residual",
    "logit": "logit {value}",
    "untested_note": "Never judged: the run took another way before it got here, or the text ended.",
    "certain": "proposed with certainty",
    "tree": "Tree of round {round}: {drafted} drafted, {tested} tested, {kept} kept",
    "tree_context": "context",
    "tree_prompt": "prompt",
    "tree_hint": "A column per position, from left to right. The straight line is the path kept; above it the branches "
    "refused, below it those never tried. Small: p where a token was tested, else the draft's q.",
    "tree_keys": "Arrow keys move, Enter shows the details, Escape closes them.",
    "tip_hint": "Click to keep this open",
    "no_plotly": "The chart library could not be loaded; text and figures are complete without it.",
}
