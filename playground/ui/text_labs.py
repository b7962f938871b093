"""Wording of the Race and Exactness tabs. Plain strings only, as in `text`."""

RACE_NAME = "Race"
RACE_INTRO = (
    "Plain decoding against up to three proposers: same prompt, same seed, same weights. They share this machine and "
    "take turns: the next round belongs to the lane whose own clock is behind, so what you see is how they would run "
    "with a machine each. Target, sampling and the proposers' own options are those of the Generate tab."
)
LANE = "Lane {number}"
LANE_GAMMA = "Gamma"
NO_LANE = "—"
TREE_SUFFIX = " (tree)"
REPEATS = "Repeats"
REPEATS_HINT = "More of them narrow the spread; only the first is shown live"
START_RACE, STOP = "Start", "Stop"
FLOAT32_AGAIN = "Again in float32"
FLOAT32_HINT = (
    "In half precision a pass over several tokens rounds otherwise than one over a single token, which can turn a near "
    "tie. In float32 every lane must give the very same tokens."
)
RACE_EMPTY = "Nothing has been raced yet."
RACE_HEAT = "Repeat {repeat} of {total}"
RACE_WAITING = "Preparing"
RACE_DONE = "Race over"
RACE_STOPPED = "Stopped; what was raced is below"
CLOCK = "{seconds:.2f} s on its own clock"
SAME = "same tokens as lane 1"
BASE = "what the others are measured against"
DIFFERS = "differs from token {index} on: {mine} in place of {other}"
GAP = "; the target's two likeliest are {gap:.3f} logits apart there"
NEAR_TIE = ": a near tie of {precision}, the same rules decide it either way"
NO_TIE = ": more than {precision} explains. This would be a bug: please report it with the settings"
SAMPLED = (
    ". Above temperature 0 lanes draw different random numbers, so texts differ and only their distribution is the same"
)
RACE_COLUMNS = ("Lane", "Tokens/s", "Speedup, measured", "Acceptance length", "Same output?")

EXACTNESS_NAME = "Exactness"
EXACTNESS_INTRO = (
    "The claim is that speculation changes nothing but the time. Here the real engine writes many short texts with and "
    "without it. The first token is held against the target's exact probabilities, the later ones against plain "
    "decoding. Chance alone makes two samples differ a little: how much is shown beside each figure. A wrong rule must "
    "be caught."
)
SAMPLES = "Texts of each kind"
TEXT_LENGTH = "Tokens of each text"
RULE = "Rule of verification"
RULE_LABELS = {
    "right": "The right one: accept when u·q < p, else draw from the residual",
    "argmax-agrees": "Wrong: keep a token when it is the target's likeliest, else take that one",
    "argmax-after-rejection": "Wrong: after a rejection take the target's likeliest token",
    "target-after-rejection": "Wrong: after a rejection draw from p and not from the residual",
    "softmax-scored-argmax": "Wrong: draft the likeliest token, but judge it as if it were drawn",
}
EXACTNESS_EMPTY = "Nothing has been tested yet."
RUNNING = "{done} of {total} texts"
PASSED = "No difference beyond chance"
CAUGHT = "Caught: this is not the target's distribution"
NOT_CAUGHT = (
    "Not caught here: this rule goes wrong only where guesses are refused, or tells only over more texts. Raise the "
    "number of texts, or choose a proposer that is refused more often"
)
UNTESTED = "Nothing was drafted here, so nothing was tested: choose another proposer or prompt"
NEVER_REFUSED = "Every guess was kept, so the rule for a rejection was never tried"
POSITION = "Token {position}"
AGAINST = {True: "against the target's exact probabilities", False: "against plain decoding"}
TEST_LINE = "χ² {chi2:.1f} with {freedom} degrees of freedom, p = {p_value}"
VARIATION_LINE = "total variation {variation:.3f}; chance alone gives {mean:.3f}, rarely above {high:.3f}"
SHARES = ("Token", "with speculation", "should be")
FROM_GENERATE = "Prompt, target, sampling and the proposer's own options are those of the Generate tab."
NEEDS_TEMPERATURE = "At temperature 0 there is one text only, so temperature 1 is taken."
