"""Are two sets of counts from the same distribution? χ², total variation, and what chance alone gives.

Rare outcomes are pooled, so that every cell expects at least five. Source: Pearson's χ² test of fit and
of homogeneity; chance levels by simulation, since total variation has no handy closed form.
"""

from dataclasses import dataclass

import torch

MIN_EXPECTED = 5.0
NUM_SIMULATED = 2000
CHANCE_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Comparison:
    """How far counts are from what they should be.

    Attributes:
        chi2, freedom, p_value: the test; p_value is the chance of a χ² this large or larger if all is right.
        variation: total variation ½ Σ |difference of shares| over the cells, 0..1.
        chance_mean, chance_high: of that, what chance alone gives: its mean and its 95th percentile.
    """

    chi2: float
    freedom: int
    p_value: float
    variation: float
    chance_mean: float
    chance_high: float

    @property
    def passed(self) -> bool:
        """Whether a χ² this large happens by chance more often than once in a thousand."""
        return self.p_value > 1e-3


def against_exact(counts: torch.Tensor, probs: torch.Tensor, seed: int = 0) -> Comparison:
    """Hold counts (V,) against the exact probabilities (V,) they should follow."""
    total = float(counts.sum())
    seen, expected = _pooled(counts.double(), probs.double() * total)
    chi2 = float(((seen - expected) ** 2 / expected.clamp(min=1e-12)).sum())
    shares = expected / expected.sum()
    simulated = _draw(shares, int(total), seed)
    return _comparison(chi2, len(seen) - 1, _variation(seen, expected), _variation(simulated, expected))


def against_sample(counts: torch.Tensor, others: torch.Tensor, seed: int = 0) -> Comparison:
    """Hold counts (V,) against counts (V,) of a sample that is right by construction."""
    joint = (counts + others).double()
    sizes = float(counts.sum()), float(others.sum())
    share = min(sizes) / sum(sizes)
    order = joint.argsort(descending=True, stable=True)
    kept = order[joint[order] * share >= MIN_EXPECTED]
    first, second = _nonempty(_cells(counts.double(), kept), _cells(others.double(), kept))
    both = first + second
    chi2 = 0.0
    for cells, size in ((first, sizes[0]), (second, sizes[1])):
        expected = both * size / sum(sizes)
        chi2 += float(((cells - expected) ** 2 / expected.clamp(min=1e-12)).sum())
    shares = both / both.sum()
    simulated = _draw(shares, int(sizes[0]), seed), _draw(shares, int(sizes[1]), seed + 1)
    return _comparison(chi2, len(both) - 1, _variation(first, second), _variation(*simulated))


def _pooled(counts: torch.Tensor, expected: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    order = expected.argsort(descending=True, stable=True)
    kept = order[expected[order] >= MIN_EXPECTED]
    return _nonempty(_cells(counts, kept), _cells(expected, kept))


def _cells(values: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """The kept values and, as one cell, all the others."""
    rest = (values.sum() - values[kept].sum()).clamp(min=0.0)
    return torch.cat((values[kept], rest[None]))


def _nonempty(first: torch.Tensor, second: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Both without the cells in which neither has anything: they are no evidence."""
    kept = first + second > 1e-6
    return first[kept], second[kept]


def _draw(shares: torch.Tensor, size: int, seed: int) -> torch.Tensor:
    """(simulations, cells) counts of samples of `size` from the shares."""
    rng = torch.Generator().manual_seed(seed)
    drawn = torch.multinomial(shares.float(), NUM_SIMULATED * size, replacement=True, generator=rng)
    offsets = torch.arange(NUM_SIMULATED).repeat_interleave(size) * len(shares)
    return torch.bincount(drawn + offsets, minlength=NUM_SIMULATED * len(shares)).view(NUM_SIMULATED, -1).double()


def _variation(counts: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Total variation between shares; rows are samples."""
    first, second = counts / counts.sum(-1, keepdim=True), others / others.sum(-1, keepdim=True)
    return (first - second).abs().sum(-1) / 2


def _comparison(chi2: float, freedom: int, variation: torch.Tensor, simulated: torch.Tensor) -> Comparison:
    half = torch.tensor([max(freedom, 1) / 2, chi2 / 2], dtype=torch.float64)
    p_value = float(torch.special.gammaincc(half[0], half[1])) if freedom > 0 else 1.0
    high = float(simulated.quantile(CHANCE_LEVEL))
    return Comparison(chi2, freedom, p_value, float(variation), float(simulated.mean()), high)
