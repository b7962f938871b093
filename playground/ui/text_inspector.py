"""All wording of the round inspector."""

INSPECTOR_NAME = "Inspect a round"
INSPECTOR_INTRO = (
    "One round of the run shown on the Generate tab, step by step: what was drafted, what the target thought of it, "
    "which number was drawn, and what became of each token."
)
NO_ROUND = "No round to show: generate something, or open a recording, on the Generate tab."
ROUND = "Round"
PREVIOUS, NEXT, NEXT_REFUSAL = "◂ Previous", "Next ▸", "Next rejection ▸"
HEAD = "Round {number} of {count}"
DRAFTED = "The proposer drafted {drafted}; {tested} tested, {accepted} accepted."
NOTHING_DRAFTED = "The proposer had no guess, so the target simply took a step."
ENDINGS = {
    "residual": "After the rejection the target added {token}, drawn from what the draft had missed: the residual.",
    "bonus": "All were accepted, and the same pass gave the target's next token for free: {token}, the bonus.",
    "plain": "It added {token}.",
    "": "The output ended inside the draft, so nothing was added.",
}
COLUMNS = ("", "drafted", "q", "p", "min(1, p/q)", "u", "verdict")
COLUMN_HINTS = {
    "q": "the draft's probability of the token, as it was drawn",
    "p": "the target's probability of it; after a refused sibling, the residual's",
    "min(1, p/q)": "the chance to be accepted",
    "u": "the number that was drawn, from 0 to 1: accepted when it is below min(1, p/q)",
}
KEPT, REFUSED, UNTESTED_WORD = "accepted", "rejected", "untested"
AFTER = "after {parent}"
POSITION_TITLES = {
    "accepted": "Position {position}: {token} was accepted",
    "rejected": "Position {position}: {token} was rejected",
    "bonus": "Position {position}: the bonus {token}",
    "plain": "Position {position}: the target's own {token}",
}
BARS = {"target": "p, target", "draft": "q, draft", "left": "residual: max(0, p − q), scaled to 1"}
REMAINING = "all others"
CACHE_TITLE = "The target's cache"
CACHE = {
    "held": "{count} tokens held before",
    "last": "the last committed token, fed now",
    "kept": "{count} accepted, kept",
    "rolled": "{count} rolled back",
    "scratch": "{count} scratch, never kept",
}
CACHE_WORDS = (
    "Before: {before}. The pass fed {fed}, so {full} were held for a moment; {rolled} of them were rolled back. "
    "After: {after}. The token the target added is fed with the next draft."
)
TREE_WORDS = "The draft was a tree: siblings stand at one position and are tried in turn."
WHAT_IF = "What if?"
WHAT_IF_HINT = (
    "The same drafted tokens, judged again under other sampling, from the logits of this run: no model works. "
    "A draft that was certain stays certain."
)
SAME_SETTINGS = "These are the settings of the run: change one to see the round judged again."
NO_LOGITS = (
    "The logits of this round were not kept (the run was stopped, is very long, or its recording is an old one), so "
    "it cannot be judged again."
)
WHAT_IF_COLUMNS = ("", "drafted", "q", "p", "min(1, p/q)", "u", "verdict", "in the run")
OUTCOME = "It would accept {accepted} of {drafted} and add {token} as {kind}."
CHANGED, UNCHANGED = "The round would end differently.", "As many tokens as in the run would be accepted."
FRESH_NUMBERS = "Another seed draws other numbers u."
OTHER_TOKEN = "a rarer token"
RESET = "The run's own settings"
