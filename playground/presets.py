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
    "temperature": 0.0,
    "max_new_tokens": 160,
    "seed": 0,
    "ngram_min": 2,
    "ngram_max": 4,
}

_HARBOUR = """\
The old harbour opens at six in the morning. Fishermen come back with boxes of herring and crab, \
and the first buyers walk along the stone wall to look at the catch. By eight the small market hall \
is full. A woman called Marta sells coffee from a blue van next to the lighthouse, and most people \
stop there before they go home. In the afternoon the harbour becomes quiet again. Children learn to \
sail in the inner basin, where the water is calm and the wind is weak. The harbour master, Mr. Olsen, \
writes the name of every boat in a large green book. He has done this for thirty-one years. In winter \
the ferry to the island leaves only twice a day, at nine and at four, because the crossing is rough \
and few passengers travel. When the lighthouse lamp is lit in the evening, the last visitors leave \
the pier and the gates are closed until the next morning."""

_BEES = """\
Honey bees live in colonies of up to sixty thousand insects. A colony has one queen, who lays all of \
the eggs, and many thousands of workers, who are all female. Young workers clean the cells and feed \
the larvae. Older workers leave the hive to collect nectar, pollen and water. A worker who finds a \
good place to feed returns to the hive and dances. The direction of the dance shows the direction of \
the flowers, and its length shows how far away they are. Nectar is mostly water. The bees fan it with \
their wings until the water has evaporated and thick honey is left. They close each full cell with \
wax. In winter the bees do not sleep. They form a tight ball around the queen, shiver to keep warm, \
and live on the honey that they stored in summer. A strong colony needs about twenty kilograms of \
honey to survive until spring."""

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
name | city | age | member
Anna Berg | Oslo | 34 | yes
Luis Ortega | Madrid | 51 | no
Mei Tanaka | Kyoto | 28 | yes
Paul Weber | Hamburg | 45 | no
Sara Lind | Malmo | 39 | yes"""

PRESETS: tuple[Preset, ...] = (
    Preset(
        id="edit",
        title="Edit this text",
        task="Editing",
        prompt=f'Copy the following text, but write "Anna" instead of "Marta" everywhere:\n\n{_HARBOUR}',
        expect=(
            "Most of the answer already stands in the prompt, so n-gram lookup guesses whole runs of it at almost "
            "no cost. Long blue stretches, broken where the edit is. This is where speculation wins most."
        ),
        settings={"max_new_tokens": 220, "gamma": 8},
    ),
    Preset(
        id="summarise",
        title="Summarise by quoting",
        task="Summary",
        prompt=f"Summarize the passage by quoting its most important sentences word for word.\n\n{_BEES}",
        expect=(
            "Quoted sentences are found by lookup; words of the target's own are not. Blue runs inside each quote, "
            "and a wrong guess wherever one quote ends and the next begins."
        ),
        settings={"max_new_tokens": 180},
    ),
    Preset(
        id="refactor",
        title="Refactor code",
        task="Code",
        prompt=(
            "Rename the class Account to Wallet in this Python code. Keep everything else the same and return the "
            f"full code.\n\n```python\n{_CODE}\n```"
        ),
        expect=(
            "Code repeats itself and most lines stay as they are, so lookup copies them, indentation included. "
            "Turn on spaces and newlines to see how much of code is white space."
        ),
        settings={"max_new_tokens": 260, "gamma": 8},
    ),
    Preset(
        id="json",
        title="Table to JSON",
        task="Structured data",
        prompt=f"Convert this table to a JSON list with one object per row.\n\n{_TABLE}",
        expect=(
            "Keys, quotes and braces come back in every row: after the first object, lookup finds the pattern in the "
            "output itself. The values come from the table. Rounds get longer as the answer grows."
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
        prompt=(
            "Translate to French: The train to Paris leaves at nine in the morning. I would like two tickets, please."
        ),
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
        prompt=(
            "A box holds 12 pencils. A teacher buys 7 boxes and gives 3 pencils to each of her 20 pupils. "
            "How many pencils are left? Think step by step."
        ),
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
