"""Heads: save and load, incremental passes, trees, and the draft model put together from its difference."""

import pytest
import torch
from tiny_training import made
from transformers import AutoModelForCausalLM

from playground.heads import (
    DraftVocabulary,
    EagleCache,
    EagleHead,
    MedusaHeads,
    assemble,
    load_head,
    output_rows,
    save_head,
)
from playground.heads.early_exit import ExitAdapter
from playground.training.samples import take_samples


@pytest.mark.parametrize("name", ["medusa", "eagle", "early-exit"])
def test_a_head_is_the_same_after_saving_and_loading(name, target, corpus, tmp_path):
    _, module = made(name, target, corpus)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    save_head(module, tmp_path, "tiny")
    loaded = load_head(tmp_path, target.weights, torch.float32, packed=False)
    assert loaded.config == module.config
    for key, value in module.state_dict().items():
        torch.testing.assert_close(loaded.state_dict()[key], value, rtol=0.01, atol=0.01)
    torch.testing.assert_close(loaded.output.weight, target.model.lm_head.weight[module.draft_ids])


def test_packed_products_equal_plain_ones(target, corpus, tmp_path):
    _, module = made("eagle", target, corpus)
    save_head(module, tmp_path, "tiny")
    plain = load_head(tmp_path, target.weights, torch.float32, packed=False)
    packed = load_head(tmp_path, target.weights, torch.float32)
    embeds, features, positions = torch.randn(5, 32), torch.randn(5, 32), torch.arange(5)
    with torch.inference_mode():
        expected = plain.guess(plain(embeds, features, positions))
        torch.testing.assert_close(packed.guess(packed(embeds, features, positions)), expected, rtol=1e-4, atol=1e-4)


def test_a_head_of_another_width_is_refused(target, tmp_path):
    save_head(MedusaHeads(16, 4, 2, 8, (2,)), tmp_path, "other")
    with pytest.raises(ValueError, match="16 wide"):
        load_head(tmp_path, target.weights)


def test_output_rows_read_out_of_a_packed_head_are_the_weights(target):
    ids = torch.tensor([3, 50, 7])
    torch.testing.assert_close(output_rows(target.weights, ids), target.model.lm_head.weight[ids])


def test_an_exit_after_the_same_layer_starts_as_the_target_s_own_output(target, corpus):
    samples = take_samples(target, corpus.texts, (2,)).hidden[2]
    adapter = ExitAdapter(32, 8, 1, target.weights.eps)
    adapter.start_from(target.weights.final_norm, samples, samples)
    expected = torch.nn.functional.rms_norm(samples, (32,), target.weights.final_norm, target.weights.eps)
    torch.testing.assert_close(adapter(samples), expected, rtol=0.05, atol=0.05)


def test_an_incremental_eagle_pass_equals_a_whole_one(target, corpus):
    _, module = made("eagle", target, corpus)
    embeds, features, positions = torch.randn(9, 32), torch.randn(9, 32), torch.arange(9)
    whole, cache = module(embeds, features, positions), EagleCache()
    parts = [module(embeds[a:b], features[a:b], positions[a:b], cache=cache) for a, b in ((0, 4), (4, 5), (5, 9))]
    torch.testing.assert_close(torch.cat(parts), whole, rtol=1e-4, atol=1e-4)
    cache.rollback(4)
    again = module(embeds[4:], features[4:], positions[4:], cache=cache)
    torch.testing.assert_close(again, whole[4:], rtol=1e-4, atol=1e-4)


def test_branches_of_an_eagle_tree_equal_chains(target, corpus):
    _, module = made("eagle", target, corpus)
    embeds, features = torch.randn(5, 32), torch.randn(5, 32)
    cache = EagleCache()
    module(embeds[:2], features[:2], torch.arange(2), cache=cache)
    # rows 2 and 3 are siblings, row 4 follows 3
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 0, 1, 0], [1, 1, 0, 1, 1]], dtype=torch.bool)
    tree = module(embeds[2:], features[2:], torch.tensor([2, 2, 3]), mask, cache)
    chain = [0, 1, 3, 4]
    expected = module(embeds[chain], features[chain], torch.arange(4))
    torch.testing.assert_close(tree[1:], expected[2:], rtol=1e-4, atol=1e-4)
    cache.keep(2, [1, 2])
    following = module(embeds[:1], features[:1], torch.tensor([4]), cache=cache)
    rows = [*chain, 0]
    torch.testing.assert_close(
        following, module(embeds[rows], features[rows], torch.arange(5))[-1:], rtol=1e-4, atol=1e-4
    )


def test_an_eagle_head_needs_no_target_to_be_made_again(target, corpus):
    _, module = made("eagle", target, corpus)
    assert EagleHead(**module.config).config == module.config


def test_an_assembled_draft_model_loads_in_transformers(target, corpus, tmp_path):
    recipe, module = made("draft", target, corpus, num_layers=1)
    recipe.save(module, tmp_path / "draft")
    folder = assemble(tmp_path / "draft", target.model, target.tokenizer, tmp_path / "cache")
    assert assemble(tmp_path / "draft", target.model, target.tokenizer, tmp_path / "cache") == folder
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    ids = torch.tensor([[3, 9, 40, 7]])
    with torch.inference_mode():
        torch.testing.assert_close(model(ids).logits, module.model(ids).logits, rtol=0.05, atol=0.05)
    assert model.config.num_hidden_layers == 1
    shipped = sum(path.stat().st_size for path in (tmp_path / "draft").glob("*.safetensors"))
    assert shipped < (folder / "model.safetensors").stat().st_size


def test_the_draft_vocabulary_keeps_frequent_and_end_tokens_and_maps_back():
    counts = torch.tensor([0, 5, 1, 9, 0, 2])
    vocabulary = DraftVocabulary.most_frequent(counts, 3, always=(4,))
    assert vocabulary.ids.tolist() == [1, 3, 4]
    assert vocabulary.index.tolist() == [-1, 0, -1, 1, 2, -1]
    assert vocabulary.spread(torch.tensor([0.2, 0.5, 0.3])).tolist() == pytest.approx([0, 0.2, 0, 0.5, 0.3, 0])


@pytest.mark.parametrize("name", ["eagle", "medusa", "early-exit", "draft"])
def test_training_can_go_on_from_shipped_weights(name, target, corpus, tmp_path):
    options = {"num_layers": 1} if name == "draft" else {}
    recipe, module = made(name, target, corpus, **options)
    for values in module.parameters():
        if values.requires_grad:
            torch.nn.init.normal_(values, std=0.02)
    assert recipe.saved(tmp_path) is None
    recipe.save(module, tmp_path)
    _, again = made(name, target, corpus, **options)
    again.load_state_dict(recipe.saved(tmp_path), strict=False)
    before = dict(module.named_parameters())
    for key, values in again.named_parameters():
        torch.testing.assert_close(values, before[key], rtol=0.01, atol=0.001)
    assert torch.equal(again.draft_ids, module.draft_ids)
