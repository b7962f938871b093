"""Can this draft model guess for this target? Checked before a run; a refusal names the first mismatch.

A draft hands token ids to the target, so ids must mean the same text in both. Padded embedding
tables are no obstacle: what counts is the tokens, not config.vocab_size. The prompt is turned into
ids by the target alone and only the target's end tokens end a text, so a draft without a chat
template, or with another one, stays exact; it merely guesses less well, which pair_notice says.
A draft with other tokens can still write text that is encoded again for the target, where both
tokenizers give text back unchanged: check_translation.
Rules after llama.cpp's check of draft vocabularies, without its tolerance for the first five ids.
"""

from typing import Any

from playground.registry.checkpoint import rollback_problem
from playground.registry.errors import ModelError
from playground.registry.loading import LoadedModel

MAX_LENGTH_DIFFERENCE = 128  # added tokens at the end of the draft's vocabulary, never proposed
SAMPLE = "Zwölf fox\n  (a + 1) don't, THE end."  # what a tokenizer may lose: case, accents, spaces, line breaks
HINT = "Choose a draft of the same family as the target, or a proposer that needs no draft, such as n-gram."


def check_pair(target: LoadedModel, draft: LoadedModel) -> None:
    """Refuse a draft that cannot guess for this target.

    Raises:
        ModelError: one sentence naming the first mismatch, in the order tokenizer type, number of
            tokens, text of a token, start and end tokens, tokens the draft lacks, rollback.
    """
    _check_shared(target, draft)
    _check_rollback(target, draft)


def check_translation(target: LoadedModel, draft: LoadedModel) -> None:
    """Refuse a draft that cannot guess for this target even as text.

    Raises:
        ModelError: one sentence: a tokenizer that changes text, or a cache that cannot be rolled back.
    """
    for loaded, role in ((target, "target"), (draft, "draft")):
        ids = loaded.tokenizer(SAMPLE, add_special_tokens=False)["input_ids"]
        back = loaded.tokenizer.decode(ids, clean_up_tokenization_spaces=False)
        changed = back.strip() != SAMPLE
        _refuse_if(changed, f"Their tokens differ, and the tokenizer of the {role} does not give text back unchanged.")
    _check_rollback(target, draft)


def token_mismatch(target: LoadedModel, draft: LoadedModel) -> str:
    """Return the first way in which the token ids of two models differ, or "" when a draft can use the target's."""
    try:
        _check_shared(target, draft)
    except ModelError as error:
        return error.message
    return ""


def _check_shared(target: LoadedModel, draft: LoadedModel) -> None:
    mine, other = target.tokenizer, draft.tokenizer
    _refuse_if(
        _kind(mine) != _kind(other),
        f"The tokenizers are of different types: {_kind(mine)} in the target, {_kind(other)} in the draft.",
    )
    target_ids, draft_ids = mine.get_vocab(), other.get_vocab()
    if target_ids != draft_ids:
        _check_tokens(target_ids, draft_ids)
    _check_special(target, draft)
    emitted = min(_num_ids(target_ids), num_rows(target))
    known = min(_num_ids(draft_ids), num_rows(draft))
    _refuse_if(
        known < emitted,
        f"The target can emit {emitted:,} different tokens, and the draft knows only the first {known:,} of them.",
    )


def _check_rollback(target: LoadedModel, draft: LoadedModel) -> None:
    for loaded, role in ((target, "target"), (draft, "draft")):
        problem = rollback_problem(loaded.config, type(loaded.model))
        _refuse_if(bool(problem), f"The {role} {problem}.")


def shared_vocab(target: LoadedModel, draft: LoadedModel) -> int:
    """Return how many leading ids both models can use: a drafted id is always below it.

    Rows of an embedding beyond the tokenizer's last token are padding and never count.
    """
    return min(num_usable(target), num_usable(draft))


def num_usable(loaded: LoadedModel) -> int:
    """Return how many leading ids one model can use: an emitted id is always below it."""
    return min(_num_ids(loaded.tokenizer.get_vocab()), num_rows(loaded))


def num_rows(loaded: LoadedModel) -> int:
    """Return the number of rows of the embedding table, padding included."""
    return loaded.model.get_input_embeddings().num_embeddings


def pair_notice(target: LoadedModel, draft: LoadedModel) -> str:
    """Say what will make this draft guess less well than it could, or return ""."""
    if token_mismatch(target, draft):
        return "The draft has another tokenizer: it writes text, which is encoded again for the target."
    templates = [getattr(loaded.tokenizer, "chat_template", None) for loaded in (target, draft)]
    if templates[0] and not templates[1]:
        return "The draft has no chat template of its own: it was not trained on chats and may guess them badly."
    if templates[0] and templates[0] != templates[1]:
        return "The draft was trained with another chat template than the target's: it may guess less well."
    return ""


def _kind(tokenizer: Any) -> str:
    """Name the algorithm (BPE, Unigram, WordPiece): class names differ between equal tokenizers."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    return type(backend.model).__name__ if backend is not None else type(tokenizer).__name__


def _num_ids(vocab: dict[str, int]) -> int:
    return max(vocab.values(), default=-1) + 1


def _check_tokens(target_ids: dict[str, int], draft_ids: dict[str, int]) -> None:
    """Refuse when one id means two texts, or when the numbers of tokens are far apart."""
    counts = len(target_ids), len(draft_ids)
    _refuse_if(
        abs(counts[0] - counts[1]) > MAX_LENGTH_DIFFERENCE,
        f"The vocabularies differ in size: {counts[0]:,} tokens in the target, {counts[1]:,} in the draft.",
    )
    suspects = {id: text for text, id in target_ids.items() if draft_ids.get(text) != id}
    draft_texts = {id: text for text, id in draft_ids.items() if id in suspects}
    if draft_texts:  # an id that only one of the two has is no mismatch
        id = min(draft_texts)
        _refuse_if(True, f"Token {id} is {suspects[id]!r} in the target, but {draft_texts[id]!r} in the draft.")


def _check_special(target: LoadedModel, draft: LoadedModel) -> None:
    starts = target.tokenizer.bos_token_id, draft.tokenizer.bos_token_id
    _refuse_if(
        None not in starts and starts[0] != starts[1],
        f"The start tokens differ: id {starts[0]} in the target, {starts[1]} in the draft.",
    )
    _refuse_if(
        bool(target.end_ids and draft.end_ids) and not set(target.end_ids) & set(draft.end_ids),
        f"The end tokens differ: {_listed(target.end_ids)} in the target, {_listed(draft.end_ids)} in the draft.",
    )


def _listed(ids: tuple[int, ...]) -> str:
    return "id " + " or ".join(str(id) for id in ids)


def _refuse_if(mismatch: bool, message: str) -> None:
    if mismatch:
        raise ModelError(f"This draft does not fit the target. {message}", HINT)
