"""Which pairs of target and draft are let through, and the sentence for each that is not."""

from types import SimpleNamespace

import pytest
import torch
from tiny_checkpoints import OTHER_SENTENCES, SENTENCES, SPECIAL, tiny_tokenizer
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from playground.registry import compat
from playground.registry.errors import ModelError


def loaded(tokenizer, rows=None, end_ids=None, config=None, stateful=False):
    """Stand in for a LoadedModel: a tokenizer, an embedding table, a config. No weights."""
    from transformers import LlamaConfig

    class Model(torch.nn.Module):
        _is_stateful = stateful

        def get_input_embeddings(self):
            return SimpleNamespace(num_embeddings=rows or len(tokenizer))

    ends = (tokenizer.eos_token_id,) if end_ids is None else end_ids
    config = config or LlamaConfig(num_hidden_layers=1)
    return SimpleNamespace(tokenizer=tokenizer, model=Model(), config=config, end_ids=ends)


@pytest.fixture(scope="module")
def tokenizer():
    return tiny_tokenizer()


def refusal(target, draft):
    with pytest.raises(ModelError) as caught:
        compat.check_pair(target, draft)
    assert caught.value.hint
    assert "\n" not in caught.value.message
    return caught.value.message


def test_the_same_tokenizer_passes(tokenizer):
    compat.check_pair(loaded(tokenizer), loaded(tiny_tokenizer()))


def test_padded_embeddings_pass_both_ways_round_and_padding_is_never_shared(tokenizer):
    plain, padded = loaded(tokenizer), loaded(tokenizer, rows=len(tokenizer) + 128)
    for target, draft in ((plain, padded), (padded, plain), (padded, padded)):
        compat.check_pair(target, draft)
        assert compat.shared_vocab(target, draft) == len(tokenizer)
        assert compat.num_usable(target) == len(tokenizer)


def test_a_tokenizer_with_more_tokens_than_rows_shares_only_the_rows(tokenizer):
    short = loaded(tokenizer, rows=len(tokenizer) - 3)
    assert compat.shared_vocab(short, short) == len(tokenizer) - 3
    compat.check_pair(short, short)


def test_a_draft_with_a_few_added_tokens_passes_and_they_are_not_shared(tokenizer):
    longer = tiny_tokenizer(added=["<think>", "</think>"])
    target, draft = loaded(tokenizer), loaded(longer)
    compat.check_pair(target, draft)
    assert compat.shared_vocab(target, draft) == len(tokenizer)


@pytest.mark.parametrize("rows", [None, 512])
def test_a_draft_that_lacks_tokens_the_target_can_emit_is_refused(tokenizer, rows):
    longer = tiny_tokenizer(added=["<think>", "</think>"])
    message = refusal(loaded(longer, rows=512), loaded(tokenizer, rows=rows))
    assert f"can emit {len(longer)} different tokens" in message and f"first {len(tokenizer)}" in message


def test_another_type_of_tokenizer_is_named_first(tokenizer):
    words = Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="a"))
    other = PreTrainedTokenizerFast(tokenizer_object=words, bos_token="a", eos_token="b")
    assert "BPE in the target, WordLevel in the draft" in refusal(loaded(tokenizer), loaded(other))


def test_vocabularies_of_very_different_size_are_refused_with_both_sizes(tokenizer):
    other = tiny_tokenizer(added=[f"<extra_{index}>" for index in range(200)])
    message = refusal(loaded(tokenizer), loaded(other))
    assert "differ in size" in message and str(len(other)) in message and str(len(tokenizer)) in message


def test_the_first_differing_token_is_named_with_both_texts(tokenizer):
    other = tiny_tokenizer(OTHER_SENTENCES)
    first = next(id for id in range(len(tokenizer)) if text(tokenizer, id) != text(other, id))
    message = refusal(loaded(tokenizer), loaded(other))
    assert f"Token {first} is {text(tokenizer, first)!r} in the target, but {text(other, first)!r}" in message


def text(tokenizer, id):
    return tokenizer.convert_ids_to_tokens(id)


def test_two_tokenizers_of_equal_size_but_swapped_tokens_are_refused():
    swapped = tiny_tokenizer(SENTENCES, special=(SPECIAL[0], SPECIAL[2], SPECIAL[1]))
    message = refusal(loaded(tiny_tokenizer()), loaded(swapped))
    assert "Token 1 is '<|im_start|>' in the target, but '<|im_end|>' in the draft" in message


def test_different_start_tokens_are_refused(tokenizer):
    other = tiny_tokenizer(start="<|endoftext|>")
    assert "start tokens differ: id 1 in the target, 0 in the draft" in refusal(loaded(tokenizer), loaded(other))


def test_a_draft_without_a_start_token_passes(tokenizer):
    compat.check_pair(loaded(tokenizer), loaded(tiny_tokenizer(start=None)))


def test_end_tokens_must_overlap_not_be_equal(tokenizer):
    compat.check_pair(loaded(tokenizer, end_ids=(0, 2)), loaded(tokenizer, end_ids=(0,)))
    message = refusal(loaded(tokenizer, end_ids=(0, 2)), loaded(tokenizer, end_ids=(1,)))
    assert "end tokens differ: id 0 or 2 in the target, id 1 in the draft" in message


def test_another_chat_template_passes_with_a_notice(tokenizer):
    other, none = tiny_tokenizer(template="{{ messages }}"), tiny_tokenizer(template=None)
    for draft, words in ((other, "another chat template"), (none, "no chat template"), (tokenizer, "")):
        compat.check_pair(loaded(tokenizer), loaded(draft))
        notice = compat.pair_notice(loaded(tokenizer), loaded(draft))
        assert words in notice and bool(words) == bool(notice)


@pytest.mark.parametrize("role", ["target", "draft"])
def test_a_recurrent_member_is_refused_and_named(tokenizer, role):
    pair = [loaded(tokenizer, stateful=role == "target"), loaded(tokenizer, stateful=role == "draft")]
    assert f"The {role} keeps a recurrent state" in refusal(*pair)


def test_a_pair_with_150_000_tokens_is_checked_to_its_last_token():
    vocab = {f"token{index}": index for index in range(150_000)}

    def large(last):
        words = Tokenizer(models.WordLevel({**vocab, last: 150_000}, unk_token="token0"))
        return loaded(PreTrainedTokenizerFast(tokenizer_object=words, eos_token="token1"))

    same, again, other = large("same"), large("same"), large("other")
    assert compat.shared_vocab(same, again) == 150_001
    compat.check_pair(same, again)
    assert "Token 150000 is 'same' in the target, but 'other'" in refusal(same, other)
