"""Batches: each sequence gets the tokens it gets alone, whatever its neighbours accept, and when it ends it ends."""

import pytest
import torch
from fakes import ids_of, lean, run, tiny_llama

from playground.config import SamplingConfig, SpecConfig
from playground.heads import DraftVocabulary
from playground.lab.batch_decode import BatchDecoder
from playground.lm.ragged import RaggedLM
from playground.proposers import DraftModelProposer, NgramProposer, Proposal, Proposer, RandomProposer
from playground.proposers.batched import BatchedDraftProposer, BatchProposer, PerSlotProposer

PROMPTS = ([5, 6, 7, 5, 6], [10], [12, 13, 14, 12, 13, 14, 12, 13], [40, 41, 40, 41, 40])
VOCAB = 96


def drafting(model, num_slots):
    many = RaggedLM(lean(model).weights, num_slots, 96)
    return BatchedDraftProposer(many, DraftVocabulary(torch.arange(VOCAB), VOCAB), ())


def proposers(model, num_slots):
    return {
        "none": BatchProposer(),
        "ngram": PerSlotProposer(lambda: NgramProposer(1, 3), num_slots),
        "random": PerSlotProposer(lambda: RandomProposer(VOCAB), num_slots),
        "same": drafting(model, num_slots),
        "other": drafting(tiny_llama(seed=7), num_slots),
    }


def decode(model, proposer, config, prompts=PROMPTS, end_ids=()):
    """All prompts at once to their ends; returns outputs and rounds."""
    decoder = BatchDecoder(RaggedLM(lean(model).weights, len(prompts), 96), VOCAB, config, end_ids)
    for slot, prompt in enumerate(prompts):
        decoder.start(slot, slot, prompt, proposer)
    rounds = []
    while not all(item.over for item in decoder.slots):
        rounds.append(decoder.round(proposer))
    return [item.output for item in decoder.slots], rounds


@pytest.mark.parametrize("gamma", [1, 2, 4, 7])
@pytest.mark.parametrize("name", ["none", "ngram", "random", "same", "other"])
def test_greedy_output_of_every_sequence_is_what_it_is_alone(model, name, gamma):
    alone = [ids_of(run(lean(model), Proposer(), prompt, max_new_tokens=24)) for prompt in PROMPTS]
    outputs, rounds = decode(model, proposers(model, 4)[name], SpecConfig(gamma, 24))
    assert outputs == alone
    assert sum(item.num_committed for item in rounds) == 4 * 24
    if name == "same":
        assert sum(item.num_accepted for item in rounds) == sum(item.num_tested for item in rounds) > 0
    if name == "other":  # rows of unequal accepted lengths did occur
        assert len({item.num_committed for item in rounds}) > 1


def test_a_batched_draft_proposes_what_it_proposes_alone(model):
    draft = tiny_llama(seed=7)
    many, rngs = drafting(draft, 4), [torch.Generator() for _ in PROMPTS]
    sampling = SamplingConfig()
    for slot, prompt in enumerate(PROMPTS):
        many.start(slot, list(prompt))
    contexts = [list(prompt) for prompt in PROMPTS]
    for grown in ((), (3,), (4, 5, 6)):  # it catches up on nothing, on one token, on several
        contexts = [context + list(grown) for context in contexts]
        found = many.propose(contexts, [3, 1, 0, 4], sampling, rngs)
        for context, gamma, proposal in zip(contexts, [3, 1, 0, 4], found, strict=True):
            single = DraftModelProposer(lean(draft), (), VOCAB)
            assert proposal.ids == (single.propose(context, gamma, sampling, rngs[0]).ids if gamma else [])


def test_an_end_token_ends_one_sequence_and_the_others_go_on(model):
    alone = [ids_of(run(lean(model), Proposer(), prompt, max_new_tokens=24)) for prompt in PROMPTS]
    end = alone[0][5]
    wanted = [ids[: ids.index(end) + 1] if end in ids else ids for ids in alone]
    assert len({len(ids) for ids in wanted}) > 1
    for name in ("none", "ngram", "same"):
        outputs, _ = decode(model, proposers(model, 4)[name], SpecConfig(4, 24), end_ids=(end,))
        assert outputs == wanted


def test_sampled_sequences_follow_their_own_numbers_and_not_their_neighbours(model):
    config = SpecConfig(3, 12, sampling=SamplingConfig(temperature=1.0, seed=5))
    together, _ = decode(model, drafting(tiny_llama(seed=7), 4), config)
    one, _ = decode(model, drafting(tiny_llama(seed=7), 1), config, PROMPTS[:1])
    assert together[0] == one[0]


def test_first_tokens_of_sampled_batches_have_the_targets_distribution(model):
    config = SpecConfig(2, 2, sampling=SamplingConfig(temperature=1.0, top_k=3))
    prompts, counts = [PROMPTS[0]] * 400, torch.zeros(VOCAB)
    for ids in decode(model, drafting(tiny_llama(seed=7), 400), config, prompts)[0]:
        counts[ids[0]] += 1
    logits = lean(model).extend(PROMPTS[0])[-1]
    top = logits.topk(3)
    expected = torch.zeros(VOCAB).scatter(0, top.indices, top.values.softmax(-1))
    assert (counts / 400 - expected).abs().max() < 0.1


def test_an_empty_prompt_is_refused_and_a_proposal_is_cut_behind_an_end(model):
    decoder = BatchDecoder(RaggedLM(lean(model).weights, 1, 32), VOCAB, SpecConfig(4, 8), (9,))
    with pytest.raises(ValueError, match="empty"):
        decoder.start(0, 0, [], BatchProposer())
    assert decoder._useful(Proposal([1, 9, 2])).ids == [1, 9]
