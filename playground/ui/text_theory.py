"""Wording of the Theory tab. Plain strings only, as in `text`."""

THEORY_NAME = "Theory"
THEORY_INTRO = (
    "Formulas and simulations: no model runs here. They assume that every drafted token is accepted with the same "
    "chance alpha, whatever came before. Real text is not like that, so a prediction is called one."
)
ROUNDS_TITLE = "How many tokens a round brings, and what that is worth"
TOKEN_TITLE = "One token: why the residual, and what simpler rules get wrong"
TOKEN_INTRO = (
    "The draft draws a token from q. It is kept with chance min(1, p/q); otherwise one is drawn from the residual "
    "norm(max(0, p − q)). What comes out is exactly p. The other rules look reasonable, and none of them gives p."
)
SLIDERS = {
    "alpha": ("Alpha", "Chance that a drafted token is accepted"),
    "gamma": ("Gamma", "Tokens drafted per round"),
    "c": ("c", "Cost of one draft step, in plain steps"),
    "width": ("Cost of width", "Of each further token in the target's pass, in plain steps"),
}
P_LABEL, Q_LABEL = "Target p", "Draft q"
WEIGHTS_HINT = "2 to 12 weights, in the order of the tokens"
FORMULA = (
    "E = (1 − α^(γ+1)) / (1 − α) = {expected:.3f} tokens per round; simulated over {rounds:,} rounds: {mean:.3f}. "
    "Predicted speedup E / (γ·c + w) = {expected:.3f} / ({gamma}·{c:.3f} + {w:.3f}) = {predicted:.2f}x; simulated: "
    "{speedup:.2f}x. Best gamma: {best}{stop}. {even}"
)
NO_SPECULATION = " (do not speculate)"
BREAK_EVEN = "Break-even alpha at this gamma: {alpha:.3f}."
NEVER_EVEN = "At this gamma no alpha breaks even."
LAST_RUN = "Last run here"
LAST_RUN_BUTTON = "Show my last run"
LAST_RUN_NOTE = (
    "Your last run: alpha {alpha:.3f}, about {gamma:.1f} drafted per round, c {c:.3f}: measured {speedup:.2f}x, where "
    "the formula with these values and the measured cost of the pass predicts {predicted:.2f}x."
)
NO_LAST_RUN = "No finished run with a draft yet: press Generate on the first tab."
CHARTS = {
    "length": "Accepted tokens in a round",
    "gamma": "Speedup by gamma",
    "surface": "Predicted speedup by alpha and c, at this gamma",
    "token": "What comes out under each rule",
}
SIMULATED, BY_FORMULA, MEASURED = "simulated", "formula", "measured"
RULE_NAMES = {
    "right": "right rule",
    "argmax-agrees": "accept if the argmax agrees",
    "argmax-after-rejection": "argmax after a rejection",
    "target-after-rejection": "p after a rejection",
    "softmax-scored-argmax": "argmax drafted, scored as drawn",
}
TOKEN_COLUMNS = ("token", "p", "q", "accept min(1, p/q)", "residual")
VARIATION = "total variation from p: {value:.3f}"
OVERLAP = "Chance of acceptance Σ min(p, q) = {value:.3f}."
