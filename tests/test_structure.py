"""The shape of the code: imports point one way, gradio stays in ui/, light parts need no torch."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LEVELS = {
    0: "config events",
    1: "theory gamma sampling verify typical text presets turns batches run_options",
    2: "lm heads registry threads prompt",
    3: "proposers display kept_logits speeds facts choices",
    4: "engine metrics acceptance trace report replay baseline models run_setup measurement",
    5: "session lab training",
    6: "ui __main__",
}
LEVEL_OF = {name: level for level, names in LEVELS.items() for name in names.split()}
FILES = sorted((ROOT / "playground").rglob("*.py"))
LIGHT = (
    *("config", "events", "metrics", "report", "session", "registry", "presets", "facts", "trace", "replay"),
    *("lab.export_command", "lab.watch_command", "lab.load_command"),
    *("ui.render", "ui.cost_view"),
)


def unit(path: Path) -> str:
    return path.relative_to(ROOT / "playground").with_suffix("").parts[0]


def imported_units(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "playground":
            parts = node.module.split(".")
            found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_imports_from_its_own_or_lower_levels_only(path):
    mine = unit(path)
    if mine == "__init__":
        return
    assert mine in LEVEL_OF, f"{mine} has no level: add it to the table"
    for other in imported_units(path) - {"__version__"}:
        assert LEVEL_OF[other] <= LEVEL_OF[mine], f"{mine} (level {LEVEL_OF[mine]}) imports {other}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_the_ui_imports_gradio(path):
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").split(".")[0])
    assert "gradio" not in names or unit(path) == "ui"


@pytest.mark.parametrize("name", LIGHT)
def test_parts_that_replay_or_only_list_need_no_torch(name):
    code = f"import sys, playground.{name}; assert not {{'torch', 'transformers'}} & set(sys.modules), 'heavy'"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
