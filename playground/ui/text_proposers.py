"""Wording about proposers and policies for gamma, apart from `text` for its length.

The order of PROPOSER_LABELS is the order on the page. Plain strings only, as in `text`.
"""

PROPOSER_LABELS = {
    "ngram": "n-gram lookup",
    "suffix": "Suffix decoding",
    "draft": "Draft model",
    "quantized": "Quantized copy",
    "eagle": "EAGLE",
    "medusa": "Medusa",
    "early-exit": "Early exit",
    "lookahead": "Lookahead",
    "none": "None (plain decoding)",
    "oracle": "Oracle",
    "noisy-oracle": "Noisy oracle",
    "random": "Random",
    "self": "Target itself",
}
TEACHING = ("oracle", "noisy-oracle", "random", "self")
TEACHING_TITLE = "To learn from, not to be faster"
PROPOSER_HINTS = {
    "ngram": "Looks for the last few tokens earlier in prompt and output and proposes what followed them. Costs almost "
    "nothing; wins when the answer repeats its source.",
    "suffix": "Finds the longest run of tokens seen before and drafts what most often followed it, as far as the "
    "counts are clear. Costs almost nothing; wins on repetition.",
    "draft": "A smaller model guesses. Works on any text; pays when it is much cheaper than the target.",
    "quantized": "The target's own weights in fewer bits. Agrees with the target most of the time; pays when its "
    "kernel is fast on this device.",
    "eagle": "One extra layer goes on from the target's own hidden states, token by token. As a tree it tries its most "
    "confident branches at once.",
    "medusa": "Several small heads guess the next tokens at once from one hidden state. They do not see each other's "
    "guesses; a tree tries several of each.",
    "early-exit": "The target's first layers draft, and its pass goes on from what they computed. Without the adapter "
    "their state is read raw, which shows why one is trained.",
    "lookahead": "The target itself guesses further ahead in the pass that verifies, and keeps the n-grams it sees. No "
    "training, no second model, but a wider pass.",
    "none": "One target pass for each token. This is what every speedup is measured against.",
    "oracle": "Replays the target's greedy answer, decoded before the clock starts: the ceiling, at temperature 0 and "
    "in float32. In fewer bits a near tie may fall otherwise, and the replay pauses until it is back.",
    "noisy-oracle": "The oracle, with a wrong token now and then: try any alpha and see the speedup it would bring.",
    "random": "Draws every token evenly from the whole vocabulary: the floor, and what a useless draft costs.",
    "self": "The target drafts for itself. Nearly every guess is kept, yet nothing is won: a draft step costs as much "
    "as a target step.",
}
# Where a proposer comes from: words and address.
PROPOSER_SOURCES = {
    "ngram": ("Saxena 2023, prompt lookup", "https://github.com/apoorvumang/prompt-lookup-decoding"),
    "suffix": ("Oliaro et al. 2024", "https://arxiv.org/abs/2411.04975"),
    "draft": ("Leviathan et al. 2023", "https://arxiv.org/abs/2211.17192"),
    "eagle": ("Li et al. 2024, 2025", "https://arxiv.org/abs/2503.01840"),
    "medusa": ("Cai et al. 2024", "https://arxiv.org/abs/2401.10774"),
    "early-exit": ("Elhoushi et al. 2024", "https://arxiv.org/abs/2404.16710"),
    "lookahead": ("Fu et al. 2024", "https://arxiv.org/abs/2402.02057"),
    "quantized": ("Georganas et al. 2025", "https://arxiv.org/abs/2503.13565"),
}

POLICY_LABELS = {
    "constant": "Constant",
    "heuristic": "Heuristic",
    "confidence": "Confidence",
    "moving-average": "Moving average",
    "cost-model": "Cost model",
}
POLICY_HINTS = {
    "constant": "Asks for gamma tokens every round",
    "heuristic": "Two more when all were accepted, one less otherwise",
    "confidence": "Drafting ends behind a token the draft is unsure of; needs a model or suffix decoding",
    "moving-average": "One more than were lately accepted on average",
    "cost-model": "The most tokens per measured millisecond, plain decoding included",
}
