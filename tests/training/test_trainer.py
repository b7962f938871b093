"""The training loop: it learns, resumes to the same state, and its unrolled steps are those of drafting."""

import pytest
import torch
from tiny_training import made

from playground.heads import EagleCache
from playground.training.batches import Batches
from playground.training.evaluate import evaluate, rank_accuracy
from playground.training.pace import Limits
from playground.training.recipes import RECIPES
from playground.training.trainer import Trainer


def trainer_of(name, target, corpus, store, folder, steps, **options):
    recipe, module = made(name, target, corpus, **options)
    batches = Batches(store, 512, seed=0)
    limits = Limits(steps=steps)
    return Trainer(recipe, module, batches, limits, folder / "checkpoint.pt", "float32", learning_rate=3e-3)


def mean_loss(trainer, batches) -> float:
    with torch.no_grad():
        return sum(float(trainer._scores(batches.load(n))[1]) for n in batches.epoch(0)) / len(batches.epoch(0))


@pytest.mark.parametrize("name", RECIPES)
def test_a_few_steps_lower_the_loss(name, target, corpus, store, tmp_path):
    options = {"feature_layers": [1, 2]} if name in ("medusa", "eagle") else {}
    trainer, news = trainer_of(name, target, corpus, store, tmp_path, 20, **options), []
    before = mean_loss(trainer, trainer._batches)
    trainer.run(news.append)
    assert mean_loss(trainer, trainer._batches) < before * 0.98
    assert news[-1].fraction == 1 and trainer.step == 20


def test_a_run_that_is_resumed_ends_like_one_that_was_not(target, corpus, store, tmp_path):
    options = {"feature_layers": [1, 2]}
    whole = trainer_of("eagle", target, corpus, store, tmp_path / "a", 6, **options)
    whole.run(lambda news: None)
    first = trainer_of("eagle", target, corpus, store, tmp_path / "b", 6, **options)
    learn = first._learn

    def stopped(batch):
        if first.step == 3:
            raise KeyboardInterrupt
        return learn(batch)

    first._learn = stopped
    with pytest.raises(KeyboardInterrupt):
        first.run(lambda news: None)
    second = trainer_of("eagle", target, corpus, store, tmp_path / "b", 6, **options)
    assert second.resume() and second.step == 3
    second.run(lambda news: None)
    for key, value in whole.module.state_dict().items():
        torch.testing.assert_close(second.module.state_dict()[key], value)


def test_unrolled_steps_are_what_a_chain_of_drafts_computes(target, corpus, store):
    recipe, module = made("eagle", target, corpus, feature_layers=[1, 2])
    batch = Batches(store, 256, seed=0).load([0])
    guesses, row = recipe.guesses(module, batch), 7
    features = module.fuse(batch.hidden)[0, : row + 1]
    cache, embeds = EagleCache(), recipe.embed(batch.ids[0])
    out = module(embeds[1 : row + 2], features, torch.arange(row + 1), cache=cache)[-1:]
    for depth, guess in enumerate(guesses, 1):
        torch.testing.assert_close(guess.states[0, row], module.state(out)[0], rtol=1e-3, atol=1e-4)
        token = row + depth + 1
        out = module(embeds[token : token + 1], out, torch.tensor([row + depth]), cache=cache)


def test_a_draft_that_is_the_target_is_always_accepted(target, corpus):
    recipe, module = made("draft", target, corpus, kept_layers=[0, 1])
    figures = evaluate(recipe, module, {"chat": ("The quick brown fox", "Numbers such as 12")})
    for temperature in ("0", "1"):
        whole = figures[temperature][""]["all"]
        assert whole["acceptance_length"] == pytest.approx(5, abs=0.05)
        assert min(whole["overlap"]) > 0.99


def test_rank_accuracy_counts_the_target_s_token_once(target, corpus, store):
    recipe, module = made("medusa", target, corpus, feature_layers=[2])
    batches = Batches(store, 512, seed=0)
    ranks = rank_accuracy(recipe, module, [batches.load(batches.epoch(0)[0])], num_ranks=5)
    assert set(ranks) == {"depth 1", "depth 2", "depth 3", "depth 4"}
    assert all(len(shares) == 5 and sum(shares) <= 1 for shares in ranks.values())
