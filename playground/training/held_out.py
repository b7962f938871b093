"""Prompts kept for evaluation, by task, and the test that keeps them out of the training text.

Plain values only. A conversation is refused when it shares a run of eight words with one of these
prompts, or holds a shorter one whole.
"""

import re

from playground.presets import PRESETS

RUN = 8  # words

HELD_OUT: dict[str, tuple[str, ...]] = {
    "chat": (
        "My neighbour plays loud music every evening. How can I talk to him without starting an argument?",
        "What should a beginner know before adopting an older rescue dog?",
        "Explain to a teenager why leaves turn red and yellow in autumn.",
        "Which small habits help someone who works from home stay healthy?",
        "I have to give a toast at my sister's wedding. What makes a toast memorable?",
    ),
    "edit": (
        "Fix the grammar in this text: Last summer my cousins was visiting us from Brazil and they brings many gifts. "
        "We goes swimming in the lake each morning, and my aunt cook fish for everybody.",
        "Correct the spelling mistakes: The libary will be closd on Wendesday becuase the heeting system is beeing "
        "repared. Books can be returnd in the box besides the entrence.",
        "Make this email more polite: Send me the invoice for the printer today. I asked twice already and nobody "
        "answers. If it is not here by noon I will cancel the order.",
        "Rewrite this paragraph in the past tense: The train leaves the station at seven. A woman in a green coat "
        "opens her newspaper and reads about the storm. Nobody speaks until the tunnel ends.",
        "Change every name in this text to Robert: Daniel walks to the bakery. The baker knows Daniel well and gives "
        "Daniel a warm roll. On the way home Daniel meets his teacher.",
    ),
    "code": (
        "Write a Python function that returns the second largest number in a list, without sorting it.",
        "Write a JavaScript function that counts how often each vowel occurs in a string.",
        "Write a Python class for a parking lot with methods to park a car, remove a car and count free places.",
        "Write an SQL query that lists all customers who placed more than three orders in March.",
        "Write a Python function that checks whether the brackets in a string are balanced.",
    ),
    "summarise": (
        "Summarise in two sentences: The city council voted on Tuesday to turn the old harbour warehouse into a public "
        "swimming pool. Construction will begin in May and take about two years. Local fishermen had asked for cold "
        "storage instead, and the mayor promised them a smaller building near the north pier.",
        "What is the main point of this text? Bees visit thousands of flowers in a day. While they collect nectar, "
        "pollen sticks to their hair and is carried from plant to plant. Without this work, orchards would bear far "
        "less fruit, and many wild plants would disappear within a few decades.",
        "Give a short headline for this story: A retired postman in Wales has built a model of his village out of "
        "forty thousand matchsticks. The work took him eleven years. Next month it will be shown in the town hall.",
        "Summarise this message for a busy manager: The shipment from Lisbon is four days late because of a strike at "
        "the port. The customer accepts the delay but asks for a discount of five percent. We need your answer today.",
        "List the three most important facts: Iceland's glaciers cover about a tenth of the country. They have lost "
        "around sixteen percent of their volume since 1890. Scientists expect most of them to be gone in two hundred "
        "years if warming continues.",
    ),
    "translate": (
        "Translate to Spanish: The pharmacy is next to the post office, and it closes at half past eight.",
        "Translate to German: My grandmother bakes bread on Sundays and tells us stories about the war.",
        "Translate to French: Could you tell me which platform the night train to Marseille leaves from?",
        "Translate to Italian: We lost our luggage at the airport and had to buy new clothes.",
        "Translate to Portuguese: The children are playing in the garden while their father paints the fence.",
    ),
    "arithmetic": (
        "A shop sells pens at 3 dollars each and notebooks at 7 dollars each. How much do 6 pens and 4 notebooks cost?",
        "A train travels 180 kilometres in 2 hours and 15 minutes. What is its average speed? Show the steps.",
        "Calculate 17 times 23 step by step.",
        "Sarah has 84 stickers. She gives a quarter of them to Tom and 9 to Eva. How many does she have left?",
        "What is 15 percent of 240? Explain how you get the answer.",
    ),
    "extraction": (
        "Extract all dates from this text: The museum opened on 4 June 1987, burned down on 12 January 2003 and was "
        "rebuilt by 30 September 2009.",
        "List the names and ages as JSON: Marta is 29 and lives in Porto. Her brother Felix is 34, and their friend "
        "Noor has just turned 31.",
        "Which products and prices are mentioned? We bought a kettle for 24 euros, two towels for 11 euros each and a "
        "garden hose for 37 euros.",
        "Turn this into a table with the columns city, day and temperature: On Monday it was 12 degrees in Bergen. "
        "On Tuesday Turin reached 21 degrees. On Friday Split had 26 degrees.",
        "Find the email addresses in this text: Write to anna.berg@example.org for tickets or to office@example.net "
        "for press questions. Phone calls are not answered.",
    ),
    "story": (
        "Write a short story about a clockmaker whose clocks all stop on the same night.",
        "Tell a story about two sisters who find a staircase under their kitchen floor.",
        "Write the opening of a mystery novel set on a ferry in thick fog.",
        "Write a fable about a heron who refuses to share the pond.",
        "Write a poem about the first snow on an empty football field.",
    ),
}


def words_of(text: str) -> list[str]:
    """Lower-case words and numbers of a text."""
    return re.findall(r"\w+", text.lower())


def _runs(text: str) -> set[tuple[str, ...]]:
    words = words_of(text)
    count = min(RUN, len(words))
    return {tuple(words[i : i + count]) for i in range(len(words) - count + 1)}


class HeldOut:
    """Says whether a text shares a run of words with a prompt kept for evaluation."""

    def __init__(self, prompts: tuple[str, ...] | None = None):
        """`prompts`: None = all of HELD_OUT and the page's presets."""
        if prompts is None:
            prompts = tuple(p for group in HELD_OUT.values() for p in group) + tuple(p.prompt for p in PRESETS)
        self._runs = {run for prompt in prompts for run in _runs(prompt)}
        self._sizes = sorted({len(run) for run in self._runs})

    def touches(self, text: str) -> bool:
        """Whether `text` must stay out of the training text."""
        words = words_of(text)
        return any(
            tuple(words[i : i + size]) in self._runs for size in self._sizes for i in range(len(words) - size + 1)
        )
