"""Recipes: what is trained, from which features, and how it is saved. RECIPES: name → class."""

from playground.training.recipes.base import Recipe, Target
from playground.training.recipes.draft import DraftRecipe
from playground.training.recipes.eagle import EagleRecipe
from playground.training.recipes.early_exit import EarlyExitRecipe
from playground.training.recipes.medusa import MedusaRecipe

RECIPES: dict[str, type[Recipe]] = {
    recipe.name: recipe for recipe in (DraftRecipe, MedusaRecipe, EagleRecipe, EarlyExitRecipe)
}

__all__ = ["RECIPES", "Recipe", "Target"]
