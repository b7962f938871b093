"""Training drafters for one target, with no data set: the target writes the text, a small network learns it.

command.py      the command line: text → features → training → evaluation → card
seeds.py        openings and instructions the user's turns grow from
held_out.py     prompts for evaluation, and the test that keeps them out of the text
writer.py       the target writes conversations, many at once
corpus.py       the text on disk: grow it, read more of it from files
features.py     hidden states and top probabilities of the target, cached on disk
batches.py      features as padded batches
losses.py       soft cross-entropy and overlap over the draft vocabulary
recipes/        what is trained and how, one file each
trainer.py      the loop: optimiser, checkpoints, resume, progress
evaluate.py     overlap, agreement, acceptance length on held-out prompts
card.py         the README of a folder of weights
"""
