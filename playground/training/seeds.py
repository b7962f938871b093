"""What the user's turns of the training text grow from: openings the target finishes, instructions it answers.

An opening is the start of a user's turn; the target writes the rest, then the answer. An
instruction is a whole turn, filled in from short lists. A request about a passage holds some lines
that the target wrote before. Plain values and random choices.
"""

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Seed:
    """The start (or the whole) of a user's turn."""

    text: str
    complete: bool


OPENINGS = (
    "",  # the target makes up the turn from nothing
    "Write a",
    "Write a short story about",
    "Write a Python function that",
    "Write a JavaScript program to",
    "Fix the grammar in this text:",
    "Correct the spelling in the following paragraph:\n\n",
    "Rewrite this sentence to make it clearer:",
    "Make this email more formal:\n\n",
    "Summarize the following text in one sentence:\n\n",
    "Give me the key points of this article:\n\n",
    "Translate to French:",
    "Translate the following sentence to Spanish:",
    "Explain",
    "What is the difference between",
    "How can I",
    "Can you help me",
    "I am planning",
    "List five",
    "Give me some ideas for",
    "A store sells",
    "Calculate",
    "Extract the names and dates from this text:\n\n",
    "Convert this list to JSON:\n\n",
    "Answer the question using the passage.\n\nPassage:",
    "Debug this code:\n\n```python\n",
    "Describe",
    "Compare",
    "Why do",
    "Tell me a story in which",
)

NAMES = ("Ana", "Omar", "Lena", "Jack", "Mia", "Ravi", "Sofia", "Paul", "Chen", "Ruth", "Ivan", "Grace")
PLACES = ("a small village", "the desert", "an old library", "a space station", "a busy market", "the coast", "a farm")
THINGS = (
    "a lost key",
    "a strange letter",
    "a talking cat",
    "a broken violin",
    "a hidden door",
    "an old map",
    "a storm",
)
TOPICS = (
    "photosynthesis", "inflation", "gravity", "vaccines", "black holes", "recycling", "the water cycle", "democracy",
    "machine learning", "sleep", "healthy eating", "volcanoes", "saving money", "time management", "the moon",
    "climate change", "electric cars", "learning a language", "public speaking", "the Roman Empire", "jazz music",
)  # fmt: skip
TASKS = (
    "reverses a string", "computes the factorial of a number", "removes duplicates from a list",
    "finds the most common word in a text", "converts Celsius to Fahrenheit", "checks if a number is prime",
    "merges two dictionaries", "reads a CSV file and prints its columns", "sorts a list of tuples by the second item",
    "counts the lines of a file", "generates the Fibonacci sequence", "validates an email address",
    "flattens a nested list", "finds the longest word in a sentence", "computes the average of a list",
)  # fmt: skip
LANGUAGES = ("French", "Spanish", "German", "Italian", "Portuguese", "Dutch")
SENTENCES = (
    "The book is on the table.", "We are going to the beach tomorrow.", "She has two brothers and a sister.",
    "I would like to reserve a room for two nights.", "The weather is very cold in winter.",
    "He forgot his umbrella on the bus.", "My favorite color is blue.", "The meeting starts at ten o'clock.",
    "They have lived in this city for ten years.", "Please close the window before you leave.",
)  # fmt: skip
MISTAKES = (
    "She don't like apples and she never eat them.", "Yesterday I go to school and meet my freind.",
    "Their are many peoples in the park today.", "He have been working here since five years.",
    "The informations was very usefull for we.", "Me and him was late becuase the bus are slow.",
    "I am agree with you, but it depend of the price.", "If I will see her, I tell her the news.",
)  # fmt: skip


PASSAGE_WORDS = (18, 75)
PASSAGE_SHARE = 0.5
REQUESTS = (
    "Summarise in two sentences: {}",
    "Summarize this text in one sentence: {}",
    "Summarize the following paragraph:\n\n{}",
    "What is the main point of this text? {}",
    "Give a short title for this text: {}",
    "Write a headline for this: {}",
    "List the three most important facts: {}",
    "List the key points of this text:\n\n{}",
    "Fix the grammar in this text: {}",
    "Correct the spelling mistakes: {}",
    "Correct any mistakes in the following text and write it again:\n\n{}",
    "Rewrite this paragraph in the past tense: {}",
    "Rewrite this text in simpler words:\n\n{}",
    "Make this text more polite: {}",
    "Make this text shorter: {}",
    "Change every name in this text to {name}: {}",
    "Replace every number in this text by {number}: {}",
    "Translate to {language}: {}",
    "Translate this text into {language}:\n\n{}",
    "Extract all names from this text: {}",
    "List all numbers and dates in this text: {}",
    "Turn this text into a table: {}",
    "Turn this into a bulleted list: {}",
    "Answer with the words of the text. {} What is it about?",
    "Continue this text: {}",
    "Repeat this text word for word: {}",
    "Explain this to a child: {}",
    "Write a question that this text answers: {}",
)  # fmt: skip


def passages_of(texts: Iterable[str]) -> list[str]:
    """Short runs of whole lines or sentences to make requests about."""
    low, high = PASSAGE_WORDS
    found = []
    for text in texts:
        kept: list[str] = []
        for part in re.split(r"(?<=[.!?])\s+|\n+", text):
            kept.append(part.strip())
            count = sum(len(each.split()) for each in kept)
            if count > high:
                kept = []
            elif count >= low and kept[-1].endswith((".", "!", "?")):
                found.append(" ".join(each for each in kept if each))
                kept = []
    return found


def _request(rng: random.Random, passages: Sequence[str]) -> str:
    words = rng.choice(passages)
    if len(words.split()) < PASSAGE_WORDS[1] // 2 and rng.random() < 0.3:
        words = f"{words} {rng.choice(passages)}"[:420]
    form = rng.choice(REQUESTS)
    language, number = rng.choice(LANGUAGES), str(rng.randint(2, 99))
    return form.format(words, name=rng.choice(NAMES), number=number, language=language)


def draw_seed(rng: random.Random, passages: Sequence[str] = ()) -> Seed:
    """Draw one seed: half are requests about `passages`, if there are any; of the others two in three openings."""
    if passages and rng.random() < PASSAGE_SHARE:
        return Seed(_request(rng, passages), complete=True)
    if rng.random() < 0.65:
        return Seed(rng.choice(OPENINGS), complete=False)
    return Seed(rng.choice(INSTRUCTIONS)(rng), complete=True)


def _table(rng: random.Random) -> str:
    rows = "\n".join(f"{name}, {rng.randint(18, 80)}, {rng.choice(LANGUAGES)}" for name in rng.sample(NAMES, 4))
    return f"Convert these lines to {rng.choice(('a JSON list', 'a Markdown table'))}:\n\n{rows}"


def _sum(rng: random.Random) -> str:
    a, b, c = rng.randint(2, 99), rng.randint(2, 99), rng.randint(2, 12)
    forms = (
        f"What is {a} + {b}?",
        f"Calculate {a} * {c} and show your work.",
        f"{rng.choice(NAMES)} has {a} marbles and buys {b} more, then loses {c}. How many are left?",
        f"A ticket costs {c} dollars. How much do {a} tickets cost?",
        f"Divide {a * c} by {c}, then add {b}. Explain each step.",
    )
    return rng.choice(forms)


def _people(rng: random.Random) -> str:
    facts = (f"{name} is {rng.randint(18, 80)} years old and speaks {rng.choice(LANGUAGES)}." for name in
             rng.sample(NAMES, 3))  # fmt: skip
    return f"Extract every name and age from this text as a list: {' '.join(facts)}"


INSTRUCTIONS = (
    _sum,
    _sum,
    _table,
    _people,
    lambda rng: f"Write a Python function that {rng.choice(TASKS)}.",
    lambda rng: f"Write a program in {rng.choice(('C', 'Java', 'JavaScript', 'Python'))} that {rng.choice(TASKS)}.",
    lambda rng: f"Translate to {rng.choice(LANGUAGES)}: {rng.choice(SENTENCES)}",
    lambda rng: f"Translate to {rng.choice(LANGUAGES)}: {' '.join(rng.sample(SENTENCES, 2))}",
    lambda rng: f"Correct the mistakes in this text: {' '.join(rng.sample(MISTAKES, rng.randint(1, 3)))}",
    lambda rng: f"Summarize this text briefly: {' '.join(rng.sample(SENTENCES, 5))}",
    lambda rng: f"Explain {rng.choice(TOPICS)} in simple words.",
    lambda rng: f"Give me {rng.choice(('three', 'five', 'ten'))} facts about {rng.choice(TOPICS)}.",
    lambda rng: f"Write a short essay about {rng.choice(TOPICS)}.",
    lambda rng: f"Write a story about {rng.choice(NAMES)}, who finds {rng.choice(THINGS)} in {rng.choice(PLACES)}.",
    lambda rng: f"Write a poem about {rng.choice(TOPICS)}.",
    lambda rng: f"I want to know more about {rng.choice(TOPICS)}. Where should I start?",
)
