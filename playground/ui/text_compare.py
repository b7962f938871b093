"""Wording of the Compare tab. Plain strings only, as in `text`."""

COMPARE_NAME = "Compare"
COMPARE_INTRO = (
    "Which proposer and which gamma for which text? Every choice decodes every prompt, with plain decoding in between, "
    "so that each speedup is held against the machine as it was at that moment. Target, precision, temperature and the "
    "proposers' own options are those of the Generate tab."
)
PROPOSERS, GAMMAS, TASKS = "Proposers", "Gammas", "Tasks"
PER_TASK, LENGTH = "Prompts per task", "New tokens per prompt"
OWN = "Own prompts, one on each line; they replace the tasks"
OWN_FILE = "Or a file: .txt, or .jsonl with prompt or turns"
START, STOP = "Start", "Stop"
CSV, JSON = "CSV", "JSON"
EMPTY = "Nothing has been compared yet."
NEEDS = "Choose at least one proposer and one gamma."
ESTIMATE = "{runs} runs, about {minutes:.0f} minutes on this machine once the models are loaded"
DONE = "{done} of {total} runs"
LEFT_OUT = "Left out: {name}: {reason}"
SPEEDUP_BY_TASK = "Speedup by task, medians, measured"
COLUMNS = (
    "Proposer",
    "Speedup, measured",
    "Predicted",
    "Alpha",
    "Acceptance length",
    "c",
    "Pass ÷ plain step",
    "Same text",
)
ADVICE = "What to choose"
