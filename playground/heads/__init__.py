"""Small networks that guess from the target's hidden states, and their files.

A folder of weights is `config.json` (with its `kind`) and safetensors. Whatever the target has
already (embedding, output rows) is not in it: `bind` hands it over when a head is loaded.

    vocabulary.py   the reduced draft vocabulary and the target's output rows for it
    files.py        save and load
    fusion.py       hidden states of several layers → one vector, normalised
    medusa.py       MedusaHeads: one pass, several depths
    eagle.py        EagleHead: one decoder layer on features, with a cache of its own
    early_exit.py   ExitAdapters: from the first k layers to the output head
    draft.py        a draft model as the difference to its target: split and assemble
"""

from playground.heads.base import Head
from playground.heads.draft import assemble, assembled_folder, save_delta
from playground.heads.eagle import EagleCache, EagleHead
from playground.heads.early_exit import ExitAdapters
from playground.heads.files import load_head, pack, read_config, save_head
from playground.heads.medusa import MedusaHeads
from playground.heads.vocabulary import DraftVocabulary, output_rows

KINDS = {"medusa": MedusaHeads, "eagle": EagleHead, "early-exit": ExitAdapters}

__all__ = [
    "KINDS",
    "DraftVocabulary",
    "EagleCache",
    "EagleHead",
    "ExitAdapters",
    "Head",
    "MedusaHeads",
    "assemble",
    "assembled_folder",
    "load_head",
    "output_rows",
    "pack",
    "read_config",
    "save_delta",
    "save_head",
]
