"""From the `model` of a phase to a class: a built-in name, a user's `model.py`, or a PaddleRec module."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import importlib
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from clickmill.config.builtin import builtin_model
from clickmill.errors import ConfigError
from clickmill.models import BUILT_IN
from clickmill.nn.model import Model

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

_DOTTED_PREFIXES = ("paddlerec.models.", "clickmill.models.")


def load_model_class(spec: str, workspace: Path | None = None) -> type[Model]:
    """The class that `spec` names.

    `dnn`: a built-in model. `path/to/model.py`: the class `Model` of that file, relative to `workspace`.
    `paddlerec.models.<task>.<name>`, with or without `/model.py`: the built-in model of that name.
    """
    dotted = spec.removesuffix("/model.py")
    if spec.startswith(_DOTTED_PREFIXES):
        return _built_in(dotted)
    if spec.endswith(".py") or "/" in spec:
        return _from_file((workspace or Path()) / spec)
    return _built_in(spec)


def _built_in(spec: str) -> type[Model]:
    name = builtin_model(spec)
    if name is None:
        near = difflib.get_close_matches(spec.rpartition(".")[2], BUILT_IN, n=1)
        hint = (
            f"did you mean `{near[0]}`?" if near else "a model of your own is named by its path, `model.py`"
        )
        raise ConfigError(f"model `{spec}` is not known; built-in models: {', '.join(BUILT_IN)}", hint=hint)
    module, class_name = BUILT_IN[name]
    return _model_class(importlib.import_module(module), class_name, name)


def _from_file(path: Path) -> type[Model]:
    if not path.is_file():
        raise ConfigError(f"model file `{path}` does not exist", hint="the path is relative to `workspace`")
    return _model_class(_execute(path.resolve()), "Model", str(path))


def _model_class(module: ModuleType, class_name: str, place: str) -> type[Model]:
    found = getattr(module, class_name, None)
    if found is None:
        raise ConfigError(f"`{place}` defines no class `{class_name}`")
    if not isinstance(found, type) or not issubclass(found, Model) or found is Model:
        raise ConfigError(
            f"`{class_name}` of `{place}` is not a subclass of clickmill.nn.Model",
            hint="from clickmill import nn; class Model(nn.Model): ...",
        )
    return found


def _execute(path: Path) -> ModuleType:
    """Run the file under a name of its own, so that two workspaces can both have a `model.py`."""
    name = "clickmill_user_" + hashlib.sha256(str(path).encode()).hexdigest()[:16]
    module_spec = importlib.util.spec_from_file_location(name, path)
    assert module_spec is not None, "a .py file always has a loader"
    assert module_spec.loader is not None, "a .py file always has a loader"
    module = importlib.util.module_from_spec(module_spec)
    with _siblings_importable(path.parent):
        sys.modules[name] = module
        try:
            module_spec.loader.exec_module(module)
        except SyntaxError as error:
            del sys.modules[name]
            raise ConfigError(f"{error.filename}:{error.lineno}: {error.msg}") from error
        except BaseException:
            del sys.modules[name]
            raise
    return module


@contextlib.contextmanager
def _siblings_importable(folder: Path) -> Iterator[None]:
    """Let the file import its neighbours by their plain names, and forget those names afterwards.

    Otherwise the `layers.py` of one workspace would be found by the model of the next.
    """
    names = {entry.stem for entry in folder.glob("*.py")}
    names |= {entry.parent.name for entry in folder.glob("*/__init__.py")}
    names -= sys.stdlib_module_names

    def loaded() -> list[str]:
        return [name for name in sys.modules if name.partition(".")[0] in names]

    hidden = {name: sys.modules.pop(name) for name in loaded()}
    importlib.invalidate_caches()
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in loaded():
            del sys.modules[name]
        sys.modules.update(hidden)
