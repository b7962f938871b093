"""Eight short lessons as plain values: what to set, where to look, what to ask, and how the own run answers.

`answer` is filled with the figures of the learner's run (`lab.why`); `without` is said where the run has none.
Knows no page.
"""

from dataclasses import dataclass

from playground.presets import preset

QUOTE = preset("summarise").prompt
STORY = "Write a short story about a lighthouse keeper who finds a message in a bottle."
EDIT = (
    "Correct all grammar mistakes in the following text. Keep every sentence.\n\nYesterday we goes to the market "
    "because "
    "my mother need some vegetables. The seller was very friendly and he give us two apples for free. On the way home "
    "it "
    "begin to rain and we was completely wet."
)


@dataclass(frozen=True, slots=True)
class Lesson:
    """One step. `settings` are changes to the usual ones; `minutes` is how long a class takes for it."""

    id: str
    title: str
    minutes: int
    settings: dict
    tell: str
    look: str
    question: str
    answer: str
    without: str
    exercise: str
    recording: str = ""


LESSONS = (
    Lesson(
        "memory",
        "1 · Why decoding is slow",
        6,
        {"prompt": EDIT, "proposer": "none", "temperature": 0.0, "max_new_tokens": 60},
        "A language model writes one token per pass, and for each pass it reads all of its weights from memory. The "
        "arithmetic for one token is small: the processor mostly waits.",
        "Watch the grey tokens: one per pass. The figure “Acceptance length” is exactly 1.",
        "A pass over five tokens reads the same weights once. Does it take five times as long?",
        "No. In this run a plain step is the unit: 1.00. With a draft the pass over several tokens cost {width:.2f} "
        "plain "
        "steps. That is the gap speculative decoding lives in.",
        "No: on this kind of machine a pass over up to about eight tokens costs little more than one over a single "
        "token. "
        "Run lesson 2, then reveal this again: it shows the cost you measured.",
        "Race tab: let plain decoding race the target itself at gamma 4. Which wins, and why is it not the drafted "
        "one?",
        "2-plain-decoding.jsonl",
    ),
    Lesson(
        "propose",
        "2 · Propose and verify",
        8,
        {"prompt": EDIT, "proposer": "ngram", "gamma": 5, "temperature": 0.0, "max_new_tokens": 80},
        "A proposer guesses the next few tokens cheaply. The target checks all of them in one pass and keeps the ones "
        "up "
        "to the first it disagrees with.",
        "Blue tokens were guessed and kept, red ones refused. Click any token to see p, q and u of its round.",
        "How many tokens did one target pass bring on average?",
        "{acceptance_length:.2f} tokens per pass: this run needed that many times fewer passes than plain decoding, "
        "and "
        "measured {speedup:.2f}x.",
        "Press Generate first, then reveal: the answer comes from your own run.",
        "Find a round in which a guess was refused. What would the text have been without the check?",
        "1-editing-with-n-gram-lookup.jsonl",
    ),
    Lesson(
        "residual",
        "3 · Why the residual",
        8,
        {"prompt": STORY, "proposer": "quantized", "gamma": 4, "temperature": 1.0, "max_new_tokens": 80, "seed": 1},
        "With sampling, a guess x drawn from q is kept with chance min(1, p(x)/q(x)). After a refusal the token is "
        "drawn "
        "from what the draft under-rated: norm(max(0, p − q)), the residual. Together that gives exactly p.",
        "Find an amber token (residual) and click it: the right-hand list is the distribution it was drawn from.",
        "A guess was refused. Is the text now worse than the target's own?",
        "No: what comes out is distributed exactly as the target's, refused or not. In this run {refused:.0%} of "
        "judged "
        "guesses were refused; each cost time only. The Theory and Exactness tabs show what goes wrong without the "
        "residual.",
        "No: what comes out is distributed exactly as the target's. A refusal costs time, never quality.",
        "Exactness tab: choose “after a rejection draw from p”. Which token becomes too frequent, and why?",
        "3-a-story-at-temperature-1-with-a-quantized-copy.jsonl",
    ),
    Lesson(
        "bonus",
        "4 · The bonus token",
        5,
        {"prompt": QUOTE, "proposer": "ngram", "gamma": 4, "temperature": 0.0, "max_new_tokens": 120},
        "When every guess of a round is kept, the same pass has already computed what follows: one more token for "
        "free.",
        "Violet tokens are bonus tokens: each closes a round in which nothing was refused.",
        "Gamma is 4. What is the most tokens one round can bring?",
        "Five: four guesses and the bonus. This run reached {acceptance_length:.2f} on average, of {gamma:.1f} "
        "guesses a "
        "round where it guessed at all.",
        "Five: four guesses and the bonus.",
        "Set gamma to 1. What is the ceiling now, and how close do you get?",
        "4-quoting-with-n-gram-lookup.jsonl",
    ),
    Lesson(
        "gamma",
        "5 · Alpha and gamma",
        8,
        {"prompt": STORY, "proposer": "eagle", "gamma": 6, "temperature": 0.0, "max_new_tokens": 80, "tree_nodes": 0},
        "Alpha is the chance that a judged guess is kept. If it were constant, gamma guesses would bring "
        "(1 − α^(γ+1)) / (1 − α) tokens: later guesses count less and less, yet each must be drafted and checked.",
        "Look at “Acceptance by draft position”, then open “Why this speed?”.",
        "Which gamma would have been best for this run?",
        "With alpha {alpha:.2f} and a draft step of {c:.3f} plain steps, the formula says gamma {best} "
        "(predicted {best_speedup:.2f}x); you ran {gamma:.1f} and measured {speedup:.2f}x.",
        "Press Generate first, then reveal: the answer comes from your own run.",
        "Theory tab: find two settings with the same speedup, one with high alpha and high c, one with low alpha and "
        "low c.",
        "5-a-story-with-an-EAGLE-chain.jsonl",
    ),
    Lesson(
        "slower",
        "6 · When it gets slower",
        6,
        {"prompt": STORY, "proposer": "random", "gamma": 8, "temperature": 0.0, "max_new_tokens": 60},
        "Guesses that are refused are paid for twice: drafting them, and checking them. A speedup below 1 is real and "
        "is "
        "shown as it is.",
        "The speedup is red. Open “Why this speed?” and read which part costs most.",
        "Alpha is about 0. Why is the run not eight times slower?",
        "Because checking is nearly free: the wide pass cost {width:.2f} plain steps, so the whole run measured "
        "{speedup:.2f}x. The text is the target's all the same.",
        "Because checking several tokens costs little more than one. The text is the target's all the same.",
        "Find a proposer and a prompt from the presets for which plain decoding wins. Name the reason.",
        "6-a-story-with-random-guesses.jsonl",
    ),
    Lesson(
        "drafts",
        "7 · Where drafts come from",
        9,
        {"prompt": STORY, "proposer": "eagle", "gamma": 3, "temperature": 0.0, "max_new_tokens": 80, "tree_nodes": 6},
        "A lookup costs nothing and only works where text repeats. A small model or a copy in fewer bits guesses on "
        "any "
        "text and costs more. EAGLE reads the target's own hidden states; Medusa guesses several places at once.",
        "Click a token in the middle: the tree of its round shows every branch tried and the path that was kept.",
        "Where does the time of this run go?",
        "Drafting took {draft_share:.0%} of the time and the target's passes the rest: a draft step cost {c:.3f} plain "
        "steps, alpha was {alpha:.2f}, the speedup {speedup:.2f}x.",
        "Press Generate first, then reveal: the answer comes from your own run.",
        "Compare tab: three proposers on chat, edit and code. Does one win everywhere?",
        "7-a-story-with-an-EAGLE-tree.jsonl",
    ),
    Lesson(
        "exact",
        "8 · Exactness",
        6,
        {"prompt": STORY, "proposer": "quantized", "gamma": 4, "temperature": 1.0, "max_new_tokens": 60},
        "The claim is strong: not “about as good”, but the same distribution. It can be tested by counting.",
        "Open the Exactness tab and start it with the right rule, then with a wrong one.",
        "Two samples of 300 texts never agree exactly. How do you tell chance from a mistake?",
        "By what chance alone gives: the χ² test and the total variation are shown beside that level. The right rule "
        "stays "
        "within it; every wrong rule leaves it.",
        "By what chance alone gives: the χ² test and the total variation are shown beside that level.",
        "Which wrong rule is hardest to catch, and how many texts does it take?",
        "3-a-story-at-temperature-1-with-a-quantized-copy.jsonl",
    ),
)
