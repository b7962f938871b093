"""One training, start to end: what `train` does between the command line and the folder of weights."""

import argparse
import shlex
import sys
from functools import partial
from time import perf_counter

import torch

from playground import registry
from playground.heads import DraftVocabulary
from playground.lm import LeanWeights, unsupported_reason
from playground.registry.bundled import slug_of, trained_folder
from playground.registry.default_target import cache_root
from playground.training.batches import Batches
from playground.training.card import Making, made_before, write_card
from playground.training.corpus import Corpus
from playground.training.evaluate import evaluate, rank_accuracy
from playground.training.fastest import fastest_setting
from playground.training.features import FeatureStore
from playground.training.held_out import HELD_OUT
from playground.training.pace import Limits, Progress
from playground.training.recipes import RECIPES, Target
from playground.training.samples import take_samples
from playground.training.seeds import draw_seed, passages_of
from playground.training.trainer import Trainer
from playground.training.writer import Writer

OPTION_OF_LAYERS = {"draft": "kept_layers", "early-exit": "exit_layers"}
RANKED_BATCHES = 6


class TrainingSession:
    """Carries one command through its stages."""

    def __init__(self, options: argparse.Namespace):
        self._options = options
        self._show = Line()
        self._work = cache_root() / "training" / slug_of(options.target)
        self._out = options.out or trained_folder(options.target, options.recipe)
        self._before: dict | None = None  # how the weights were made that this training goes on from

    def run(self) -> None:
        """Do every stage. Raises ModelError or ValueError."""
        if self._options.threads:
            torch.set_num_threads(self._options.threads)
        target = self._load()
        corpus = self._write_text(target)
        if self._options.recipe != "corpus":
            self._train(target, corpus)
        elif self._options.out:
            corpus.export(self._options.out)

    def _load(self) -> Target:
        loaded = registry.load(self._options.target, "bfloat16", lambda stage, message, fraction: self._show(message))
        reason = unsupported_reason(loaded.model)
        if reason:
            raise ValueError(f"Drafters are trained for the Llama family only: {reason}.")
        weights = LeanWeights(loaded.model, "bfloat16")
        return Target(loaded.name, loaded.model, weights, loaded.tokenizer, loaded.end_ids)

    def _write_text(self, target: Target) -> Corpus:
        options, path = self._options, self._work / "corpus.jsonl"
        corpus = Corpus(path, target.tokenizer)
        shipped = trained_folder(options.target, "corpus").with_suffix(".jsonl.gz")
        if not corpus.texts and shipped.is_file():
            corpus.read_file(shipped)
        for file in options.corpus:
            corpus.read_file(file)
        for file in options.text:
            corpus.read_file(file, options.tokens // 2)
        if corpus.num_tokens < options.tokens:
            writer = Writer(
                target.weights,
                target.tokenizer,
                target.end_ids,
                seed=options.seed + corpus.num_tokens,
                num_slots=options.slots,
                draw=partial(draw_seed, passages=self._passages(target, corpus)),
            )
            rate = Rate(options.tokens, "Writing text", self._show)
            corpus.grow(writer.write(), options.tokens, rate)
        self._show(f"Text: {corpus.num_tokens:,} tokens in {len(corpus.texts):,} pieces ({path})", end=True)
        return corpus

    def _passages(self, target: Target, corpus: Corpus) -> list[str]:
        answers = (target.tokenizer.decode(text.ids[text.answer_start :], True) for text in corpus.texts)
        return passages_of(answers)

    def _train(self, target: Target, corpus: Corpus) -> None:
        options = self._options
        choices = {OPTION_OF_LAYERS.get(options.recipe, "feature_layers"): options.layers} if options.layers else {}
        recipe = RECIPES[options.recipe](target, choices)
        store = FeatureStore(self._work / "features", corpus.head(options.tokens), recipe.layers)
        total = sum(len(text.ids) for text in store.texts)
        store.build(target.weights, target.num_ids, Rate(total, "Reading features", self._show))
        self._show(f"Features: {total:,} tokens, layers {recipe.layers or 'none'}", end=True)
        batches = Batches(store, options.batch_tokens or recipe.batch_tokens, options.seed, target.weights.device)
        trainer, precision = self._trainer(recipe, corpus, store, batches)
        trainer.run(self._progress)
        self._show(f"Trained {trainer.step} steps, {trainer.num_tokens:,} tokens", end=True)
        recipe.save(trainer.module, self._out)
        self._finish(recipe, trainer, batches, total, precision)

    def _trainer(self, recipe, corpus: Corpus, store: FeatureStore, batches: Batches) -> tuple[Trainer, str]:
        options, target = self._options, recipe.target
        checkpoint = self._work / recipe.name / "checkpoint.pt"
        if checkpoint.is_file() and not options.resume:
            checkpoint.replace(checkpoint.with_suffix(".old.pt"))
        saved = torch.load(checkpoint, weights_only=True)["module"] if checkpoint.is_file() else None
        if saved is None and options.resume:
            saved = recipe.saved(self._out)
            self._before = made_before(self._out) if saved else None
        if saved is None:
            counts = corpus.counts(target.num_ids)
            ids = DraftVocabulary.most_frequent(counts, options.draft_ids, target.end_ids).ids
        else:
            ids = saved["draft_ids"].long()
        module = recipe.make(ids, take_samples(target, store.texts, recipe.layers)).to(target.weights.device)
        if self._before:
            module.load_state_dict(saved, strict=False)
            self._show(f"Going on from the weights in {self._out}", end=True)
        first = batches.load(batches.epoch(0)[0])
        precision = "bfloat16"
        if not options.threads:
            precision, threads = fastest_setting(recipe, module, first)
            self._show(f"Fastest here: {precision}, {threads} threads", end=True)
        limits = Limits(minutes=options.minutes)
        rate, share = options.learning_rate, options.greedy_share
        trainer = Trainer(recipe, module, batches, limits, checkpoint, precision, rate, share, options.seed)
        if options.resume and trainer.resume():
            self._show(f"Going on from step {trainer.step}", end=True)
        return trainer, precision

    def _progress(self, news: Progress) -> None:
        overlaps = " ".join(f"{value:.3f}" for value in news.overlaps.values())
        speed = f"{news.tokens_per_s:,.0f} tokens/s, {news.left_s / 60:.1f} min left"
        self._show(f"{news.fraction:4.0%} step {news.step} · loss {news.loss:.3f} · overlap {overlaps} · {speed}")

    def _finish(self, recipe, trainer: Trainer, batches: Batches, corpus_tokens: int, precision: str) -> None:
        count = self._options.evaluation_prompts
        prompts = {task: group[:count] for task, group in HELD_OUT.items()}
        self._show("Evaluating on held-out prompts", end=True)
        figures = {} if count == 0 else evaluate(recipe, trainer.module, prompts)
        ranks = rank_accuracy(recipe, trainer.module, [batches.load(b) for b in batches.epoch(0)[:RANKED_BATCHES]])
        making = Making(
            recipe=recipe.name,
            target=recipe.target.name,
            command=f"python -m playground {shlex.join(sys.argv[1:])}",
            corpus_tokens=corpus_tokens,
            seen_tokens=trainer.num_tokens + (self._before or {}).get("seen_tokens", 0),
            minutes=trainer.elapsed_s / 60 + (self._before or {}).get("minutes", 0.0),
            precision=precision,
            num_params=sum(p.numel() for p in trainer.module.parameters() if p.requires_grad),
            layers=recipe.layers,
            num_draft_ids=len(trainer.module.draft_ids),
        )
        write_card(self._out, making, figures, ranks)
        for temperature, groups in figures.items():
            for variant, tasks in groups.items():
                self._show(f"temperature {temperature} {variant} {tasks['all']}", end=True)
        self._show(f"Weights and card: {self._out}", end=True)


class Line:
    """One line on stderr that is rewritten on a terminal, and now and then a line elsewhere."""

    EVERY_S = 15.0

    def __init__(self):
        self._last = 0.0

    def __call__(self, text: str, end: bool = False) -> None:
        if sys.stderr.isatty():
            print(f"\r\033[K{text}", end="\n" if end else "", file=sys.stderr, flush=True)
        elif end or perf_counter() - self._last > self.EVERY_S:
            self._last = perf_counter()
            print(text, file=sys.stderr, flush=True)


class Rate:
    """Reports a count of tokens with its rate and the time left."""

    def __init__(self, total: int, what: str, show: Line):
        self._total, self._what, self._show = total, what, show
        self._start: tuple[float, int] | None = None

    def __call__(self, done: int) -> None:
        self._start = self._start or (perf_counter(), done)
        rate = (done - self._start[1]) / max(1e-6, perf_counter() - self._start[0])
        text = f"{self._what}: {done:,} of {self._total:,} tokens"
        if rate > 0:
            left = max(0, self._total - done) / rate / 60
            text += f", {rate:,.0f} a second, {left:.1f} min left"
        self._show(text)
