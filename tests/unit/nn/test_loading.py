"""Finding a model's class by name, by file, by PaddleRec's name."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from clickmill import nn
from clickmill.errors import ConfigError
from clickmill.models.dnn import DeepNetwork
from clickmill.models.lr import LogisticRegression

if TYPE_CHECKING:
    from pathlib import Path

USER_MODEL = """
from clickmill import nn
from layers import WIDTH

class Model(nn.Model):
    width = WIDTH
"""


def workspace(folder: Path, width: int) -> Path:
    folder.mkdir()
    (folder / "model.py").write_text(USER_MODEL)
    (folder / "layers.py").write_text(f"WIDTH = {width}\n")
    return folder


@pytest.mark.parametrize(
    "spec", ["dnn", "paddlerec.models.rank.dnn", "paddlerec.models.rank.dnn/model.py", "clickmill.models.dnn"]
)
def test_a_built_in_model_has_several_names(spec: str) -> None:
    assert nn.load_model_class(spec) is DeepNetwork


def test_paddlerecs_logistic_regression_is_ours() -> None:
    assert nn.load_model_class("paddlerec.models.rank.logistic_regression") is LogisticRegression


def test_an_unknown_name_comes_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match="`deepfn` is not known") as caught:
        nn.load_model_class("deepfn")
    assert caught.value.hint == "did you mean `deepfm`?"


def test_a_users_file_finds_its_siblings_and_leaves_no_names_behind(tmp_path: Path) -> None:
    first, second = workspace(tmp_path / "one", 1), workspace(tmp_path / "two", 2)
    before = list(sys.path)
    loaded = [nn.load_model_class("model.py", folder) for folder in (first, second, first)]
    assert [getattr(model, "width", None) for model in loaded] == [1, 2, 1]
    assert "layers" not in sys.modules
    assert "model" not in sys.modules
    assert sys.path == before


def test_an_absolute_path_needs_no_workspace(tmp_path: Path) -> None:
    folder = workspace(tmp_path / "one", 5)
    assert issubclass(nn.load_model_class(str(folder / "model.py")), nn.Model)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere/model.py` does not exist"):
        nn.load_model_class("nowhere/model.py", tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\n", "defines no class `Model`"),
        ("class Model:\n    pass\n", "is not a subclass of clickmill.nn.Model"),
        ("from clickmill.nn import Model\n", "is not a subclass of clickmill.nn.Model"),
        ("class Model(:\n", r"model.py:1: invalid syntax"),
    ],
)
def test_a_file_without_a_usable_model_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "model.py").write_text(text)
    with pytest.raises(ConfigError, match=words):
        nn.load_model_class("model.py", tmp_path)


def test_what_a_users_file_raises_is_raised(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        nn.load_model_class("model.py", tmp_path)


def test_a_model_without_forward_says_so() -> None:
    class Model(nn.Model):
        pass

    with pytest.raises(NotImplementedError, match="Model has no `forward"):
        Model(nn.Inputs(0, {}), {})(None)


def test_without_torch_the_names_are_known_and_the_package_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from clickmill.models import BUILT_IN\n"
        "import clickmill.metrics\n"
        "from clickmill.errors import MissingExtra\n"
        "try:\n    import clickmill.nn\n"
        "except MissingExtra as error:\n    print(len(BUILT_IN), error.hint)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "12 pip install 'clickmill[train]'\n"
