"""Ready-made prompts, each with settings and an honest word on what to expect.

Plain values only: it knows no page, no model and no engine. What a preset promises is a direction
("copies, so lookup guesses well"), never a number: numbers are measured, not written down.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Preset:
    """One prompt to try. `settings` holds RunSettings fields that differ from the defaults."""

    id: str
    title: str
    task: str
    prompt: str
    expect: str
    system_prompt: str = ""
    settings: dict = field(default_factory=dict)


# What choosing a preset sets on the page; a preset names only what differs.
PRESET_DEFAULTS = {
    "proposer": "ngram",
    "gamma": 5,
    "gamma_policy": "constant",
    "temperature": 0.0,
    "max_new_tokens": 160,
    "seed": 0,
    "ngram_min": 2,
    "ngram_max": 4,
}

_DIARY = """\
Yesterday we goes to the market because my mother need some vegetables. The seller was very friendly \
and he give us two apples for free. On the way home it begin to rain and we was completely wet. My \
little brother think it was funny, but my shoes was ruined. At home we make a hot soup and drinks tea. \
My father arrive late because his train have a delay of one hour. We eats together and talked about \
the weekend. On Saturday my uncle come to visit us, and he always bring his dog. The dog is very big \
but it do not bite. My brother love to play with him in the garden. I hopes that the weather will be \
better on Saturday."""

_MUSEUM = """\
The museum is open from Tuesday to Sunday. It opens at ten in the morning and closes at six in the \
evening. On Mondays the museum is closed. Tickets cost eight euros for adults and four euros for \
students. Children under twelve do not pay. The first room shows paintings of the harbour from the \
last century. The second room shows old maps and ship models. A guided tour starts every day at two \
o'clock and takes one hour. Dogs are not allowed in the museum, but there is a garden where they can \
wait. The cafe in the garden serves coffee, cake and soup. Groups of more than ten people should call \
one day before they come."""

_CODE = """\
class Account:
    def __init__(self, owner, balance=0):
        self.owner = owner
        self.balance = balance
        self.history = []

    def deposit(self, amount):
        if amount <= 0:
            raise ValueError("amount must be positive")
        self.balance = self.balance + amount
        self.history.append(("deposit", amount))
        return self.balance

    def withdraw(self, amount):
        if amount <= 0:
            raise ValueError("amount must be positive")
        if amount > self.balance:
            raise ValueError("not enough money")
        self.balance = self.balance - amount
        self.history.append(("withdraw", amount))
        return self.balance

    def report(self):
        for kind, amount in self.history:
            print(kind, amount)
        print("balance", self.balance)"""

_TABLE = """\
| name | city | age |
|---|---|---|
| Anna | Oslo | 34 |
| Luis | Madrid | 51 |
| Mei | Kyoto | 28 |
| Paul | Hamburg | 45 |"""

PRESETS: tuple[Preset, ...] = (
    Preset(
        id="edit",
        title="Edit this text",
        task="Editing",
        prompt=f"Correct all grammar mistakes in the following text. Keep every sentence.\n\n{_DIARY}",
        expect=(
            "Most of the answer already stands in the prompt, so n-gram lookup guesses whole runs of it at almost "
            "no cost: long blue stretches, broken where a word is corrected. This is where speculation wins most. "
            "(A small target overlooks many mistakes, with or without speculation.)"
        ),
        settings={"max_new_tokens": 220, "gamma": 8},
    ),
    Preset(
        id="summarise",
        title="Summarise by quoting",
        task="Summary",
        prompt=f"List the rules and prices of the museum as bullet points, quoting the text.\n\n{_MUSEUM}",
        expect=(
            "The target quotes the passage nearly sentence by sentence, and lookup finds each quote in the prompt. "
            "A wrong guess wherever the answer skips ahead."
        ),
        settings={"max_new_tokens": 180, "gamma": 8},
    ),
    Preset(
        id="refactor",
        title="Refactor code",
        task="Code",
        prompt=(
            f"Add a comment above each method of this Python class. Return the full code.\n\n```python\n{_CODE}\n```"
        ),
        expect=(
            "Code repeats itself and lines stay as they are, so lookup copies them, indentation included. (A small "
            "target tends to copy everything and forget the comments; speculation changes nothing about that.) "
            "Turn on spaces and newlines to see how much of code is white space."
        ),
        settings={"max_new_tokens": 260, "gamma": 8},
    ),
    Preset(
        id="json",
        title="Table to JSON",
        task="Structured data",
        prompt=f"Convert the table to JSON.\n\n{_TABLE}\n\nUse the keys name, city and age.",
        expect=(
            "Keys, quotes and braces come back in every row: after the first object, lookup finds the pattern in the "
            "output itself. The values are harder, and this small target gets some of them wrong on its own."
        ),
        settings={"max_new_tokens": 200, "ngram_min": 1},
    ),
    Preset(
        id="chat",
        title="Chat answer",
        task="Chat",
        prompt="I want to sleep better. Can you give me some simple advice?",
        expect=(
            "New text that stands nowhere in the prompt: lookup has little to copy and may be no faster than plain "
            "decoding. A proposer that is itself a model, such as the quantized copy, guesses better here, "
            "but each guess costs time."
        ),
        settings={"proposer": "quantized", "gamma": 4},
    ),
    Preset(
        id="translate",
        title="Translate",
        task="Translation",
        prompt="Translate to French: Good morning. I would like a cup of coffee and a glass of water, please.",
        expect=(
            "The words change, so lookup seldom finds anything beyond names and numbers. Also a look at the target's "
            "limits: a small model's French is shaky, and speculation reproduces it faithfully, mistakes included."
        ),
        settings={"max_new_tokens": 80},
    ),
    Preset(
        id="arithmetic",
        title="Arithmetic steps",
        task="Reasoning",
        prompt="Calculate step by step: 24 + 18, then multiply the result by 2.",
        expect=(
            "Set phrases are easy to guess and digits are hard. Where a guess fails, click the token: the target's "
            "five likeliest tokens show how sure it was. The sum itself may be wrong; that is the target, not the "
            "speculation."
        ),
        settings={"proposer": "quantized", "gamma": 4},
    ),
    Preset(
        id="story",
        title="Story at temperature 1",
        task="Free writing",
        prompt="Write a short story about a lighthouse keeper who finds a message in a bottle.",
        expect=(
            "Hard to guess: at temperature 1 many next tokens are plausible, so even a good guess is often refused. "
            "Expect red and amber, and a speedup near or below 1. The text is still an exact sample of the target."
        ),
        settings={"temperature": 1.0, "gamma": 3, "seed": 7},
    ),
    Preset(
        id="list",
        title="Counting list",
        task="Pattern",
        prompt="Count from 1 to 40. Write each number on its own line.",
        expect=(
            "A pattern that feeds on itself: lookup finds the last lines in the output, yet each new number differs "
            "from the one it copies. Watch which draft position fails in the last chart."
        ),
        settings={"ngram_min": 1, "max_new_tokens": 140},
    ),
)

DEFAULT_PRESET = "edit"


def preset(preset_id: str) -> Preset:
    """Return the preset of this id. Raises ValueError when there is none."""
    for item in PRESETS:
        if item.id == preset_id:
            return item
    raise ValueError(f"There is no preset {preset_id!r}; there are {', '.join(item.id for item in PRESETS)}.")


def preset_settings(item: Preset) -> dict:
    """Return the RunSettings fields that choosing `item` sets."""
    return PRESET_DEFAULTS | {"system_prompt": item.system_prompt} | item.settings
