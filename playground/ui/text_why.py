"""Wording of the Why tab. Plain strings only, as in `text`."""

WHY_NAME = "Why this speed?"
WHY_INTRO = "Explains the newest run of the Generate tab from its own events. Costs are in plain decoding steps."
NO_RUN = "No run with a draft yet: press Generate on the first tab, with any proposer but “None”."
FORMULA = (
    "A round drafted {gamma:.1f} tokens where it drafted at all ({share:.0%} of rounds). With alpha {alpha:.3f} that "
    "should bring {expected:.2f} tokens a round; it brought {length:.2f}. Drafting cost {draft:.2f} plain steps a "
    "round, the target's pass {width:.2f}, the rest {other:.2f}."
)
RESULT = "Measured speedup {speedup:.2f}x; the formula with these numbers predicts {predicted:.2f}x."
BEST = {
    True: "For this alpha and these costs the best gamma is {best} (predicted {speedup:.2f}x).",
    False: "For this alpha and these costs it is best not to speculate at all.",
}
EVEN = {
    True: "At this gamma, alpha must exceed {even:.3f} for speculation to win.",
    False: "At this gamma no alpha would win.",
}
SPLIT_TITLE = "Where a round's time goes"
SPLIT = {
    "plain": ("one plain step", "What any target pass costs, with or without a draft"),
    "draft": ("drafting", "Making the guesses"),
    "width": ("width", "What the pass over several tokens costs more than one over a single token"),
    "sampling": ("sampling", "Logits to probabilities, the verdict, the target's own token"),
    "rollback": ("rollback", "Cutting the cache back to what was kept"),
    "python": ("everything else", "Text, the top of each distribution, events, Python"),
}
VERDICTS = {
    "stop": "The guesses are too poor or too dear here: plain decoding is faster. Try another proposer.",
    "seldom": "Most rounds had nothing to draft, so most of the run was plain decoding. This proposer needs text that "
    "repeats itself; a draft model or EAGLE guesses on any text.",
    "draft": "Drafting costs most. Take a smaller gamma, or a proposer whose steps are cheaper.",
    "width": "The wide pass costs most: checking this many tokens is no longer free on this device. Take a smaller "
    "gamma or a smaller tree, or a larger target, whose pass is bound by reading weights.",
    "other": "The work around the passes costs most, which is unusual: is other work running on this machine?",
    "alpha": "More than half of the guesses that were judged were refused. A better proposer for this text would help "
    "most.",
    "more": "Costs are low and guesses are good: a larger gamma should pay.",
    "good": "Nothing stands out: gamma and proposer fit this text.",
}
RATES_TITLE = "Three rates that are not the same"
RATES = (
    ("alpha", "Alpha", "accepted ÷ tested: the chance that a judged guess is kept; does not depend on gamma"),
    (
        "draft_efficiency",
        "Draft efficiency",
        "accepted ÷ drafted: falls with gamma by itself, since what follows a "
        "rejection is drafted in vain (other engines call it draft acceptance rate)",
    ),
    (
        "acceptance_length",
        "Acceptance length",
        "tokens per target pass, the target's own included: what the pass is divided by",
    ),
)
REFRESH = "Explain the newest run"
