"""Helpers for tests of training: a writer of short conversations, and modules at their starting point."""

import random

import torch

from playground.training.recipes import RECIPES, Target
from playground.training.samples import take_samples
from playground.training.seeds import Seed
from playground.training.writer import Writer

TURNS = ("The quick brown", "Numbers such as 12", "def add(a", "A target checks")


def draw(rng: random.Random) -> Seed:
    """One of a few seeds, half of them whole turns."""
    return Seed(rng.choice(TURNS), rng.random() < 0.5)


def writer_of(target: Target, **options) -> Writer:
    """A writer of short conversations from a few openings."""
    settings = {"seed": 0, "num_slots": 4, "max_tokens": 64, "draw": draw} | options
    return Writer(target.weights, target.tokenizer, target.end_ids, **settings)


def made(name: str, target: Target, corpus, **options):
    """A recipe and the module it starts from, every fourth id drafted."""
    recipe = RECIPES[name](target, options)
    return recipe, recipe.make(torch.arange(0, target.num_ids, 4), take_samples(target, corpus.texts, recipe.layers))
