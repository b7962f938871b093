"""Wording of the Cost and load tab. Plain strings only, as in `text`."""

COST_NAME = "Cost and load"
COST_INTRO = (
    "Speculation lives on passes that are not full: checking five tokens costs hardly more than one as long as reading "
    "the weights takes longer than computing with them. Where the measured curve bends, that ends. Many sequences at "
    "once fill the pass by themselves, so that the gain fades with load: it is a trick for latency."
)
COST_FROM = "Target, sampling and the proposers' own options are those of the Generate tab."
PRECISIONS, CONTEXTS = "Precisions of the cost curve", "Tokens of context behind the pass"
PRECISIONS_HINT = "Sequences are decoded in the first one"
CYCLES, CYCLES_HINT = "Cycles", "Each pass is timed once per cycle"
ALPHA, GAMMA, C = "Alpha", "Gamma", "c"
ALPHA_HINT = "Expected: chance that a drafted token is accepted"
GAMMA_HINT = "Drafted tokens per sequence and round"
C_HINT = "Expected: cost of one draft step, in plain steps"
PROPOSER = "Proposer"
BATCHES, BATCHES_HINT = "Sequences at once, decoded for real", "None: only the cost curve is measured"
LENGTH, TASKS = "New tokens of each sequence", "Prompts of these tasks"
START, STOP, JSON = "Start", "Stop", "JSON"
EMPTY = "Nothing has been measured yet."
STOPPED = "Stopped. What was measured is kept."
NEEDS = "Choose at least one precision and one context."
NEEDS_TASK = "Choose at least one task for the prompts."
LEFT_OUT = "Left out: {what}: {reason}"
CHARTS = {
    "cost": ("Cost of one target pass", "ms by tokens in the pass; bars: fastest to slowest; a ring: the bend"),
    "expected": ("Expected speedup", "by sequences at once, from the curve, alpha, gamma and c"),
    "speedup": ("Speedup, measured", "by sequences at once, against plain decoding of as many"),
    "throughput": ("Throughput", "tokens per second, all sequences together"),
    "latency": ("Latency", "ms per token of one sequence"),
}
TOKENS_AXIS, BATCH_AXIS = "tokens in the pass", "sequences at once"
CURVE_NAME = "{precision}, {context:,} tokens"
PLAIN, SPECULATIVE, MEASURED, PREDICTED = "plain", "speculative", "measured", "predicted"
EXPECTED = "Expected, {name}"
BEYOND = "Passes over more than {num} tokens were not measured: their cost is extrapolated."
RATES = {
    "throughput": "B = {batch}: {plain:.0f} tokens/s in all plainly, {speculative:.0f} speculatively",
    "latency": "B = {batch}: each sequence waits {plain:.0f} ms for a token plainly, {speculative:.0f} speculatively",
}
EXACT = (
    "Same tokens: sequences whose tokens equal plain decoding's. In float32 all do; in lower precisions a pass of "
    "another width rounds differently, and a near tie may fall the other way."
)
REPEATS, REPEATS_HINT = "Repeats", "Runs with speculation per batch size, each between two plain ones"
