"""Training of Keras models: gradients by :func:`dparray.value_and_grad`.

A training step calls the model in Keras' stateless scope, in which variables have the traced values
of the transformation and assignments are collected. ``fit`` and methods for one batch are those of
Keras' trainer for PyTorch, whose file is executed with a stand-in for the few names of PyTorch.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import itertools
import operator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from dparray.gradients import stop_gradient, value_and_grad
from dparray.gradients.public import dp
from dparray.gradients.replay import Replayed


def make_trainable(trainer: Any, finder: Any) -> None:
    """Give Keras' trainer for NumPy the methods that train.

    Args:
        trainer: the module ``keras.src.backend.numpy.trainer``.
        finder: returns arrays of values (``place``).
    """
    result = _trainer_of_torch(Path(trainer.__file__).parents[1] / "torch" / "trainer.py")
    plain: Any = trainer.NumpyTrainer
    keras_trainer = plain.__mro__[1]

    def symbolic_build(model: Any, data_batch: Any = None, iterator: Any = None) -> None:
        keras_trainer._symbolic_build(model, iterator, data_batch)

    def train_step(model: Any, data: Any) -> Any:
        return _train_step(model, trainer.tree.map_structure(finder.place, data))

    plain._symbolic_build = symbolic_build
    for name in ("fit", "train_on_batch", "test_on_batch"):
        setattr(plain, name, getattr(result, name))
    plain.train_step, plain.make_train_function = train_step, _make_train_function
    plain.train_function = None


def _trainer_of_torch(file: Path) -> Any:
    """Return the trainer class of Keras' backend for PyTorch, without PyTorch."""
    torch = SimpleNamespace(no_grad=contextlib.nullcontext)

    def imported(name: str, *rest: Any) -> Any:
        return torch if name == "torch" else builtins.__import__(name, *rest)

    module: Any = ModuleType("keras.src.backend.torch.trainer")
    module.__builtins__ = {**vars(builtins), "__import__": imported}
    text = file.read_text(encoding="utf-8")
    for mode in ("self.train()", "self.eval()"):  # of PyTorch's modules; a model may have others
        text = text.replace(mode, "pass")
    exec(compile(text, str(file), "exec"), vars(module))
    module.TorchEpochIterator = module.EpochIterator
    return module.TorchTrainer


def _make_train_function(model: Any, force: bool = False) -> None:
    def train(batches: Any) -> Any:
        for batch in batches:
            logs = model.train_step(batch)
        return logs

    if model.train_function is None or force:
        model.train_function = train


class _Recorded:
    """A training step whose calls are recorded, and the parts of the model that it assumes."""

    def __init__(self, model: Any) -> None:
        self.variables, self.parts = _variables(model), _parts(model)
        self.run: Replayed | None = Replayed(functools.partial(self._step, model), watches=False)

    def is_for(self, model: Any) -> bool:
        """Return whether the model has the same parts."""
        parts = _parts(model)
        return len(parts) == len(self.parts) and all(map(operator.is_, parts, self.parts))

    def _step(self, model: Any, values: Any, data: Any) -> tuple[Any, dict[int, Any]]:
        """Return the metrics, and the new values of the variables that change."""
        from keras import StatelessScope

        with StatelessScope(state_mapping=zip(self.variables, values, strict=True)) as scope:
            logs = _step(model, data)
        after = map(scope.get_current_value, self.variables)
        pairs = enumerate(zip(values, after, strict=True))
        return logs, {number: new for number, (old, new) in pairs if new is not old}


def _variables(model: Any) -> list[Any]:
    optimizer = [] if model.optimizer is None else model.optimizer.variables
    return [*model.variables, *model.metrics_variables, *optimizer]


def _parts(model: Any) -> list[Any]:
    """Return variables, losses, the optimizer, and attributes of it and of layers: numbers."""
    optimizer = model.optimizer
    attributes = [
        vars(each).items() for each in (*model._flatten_layers(), optimizer) if each is not None
    ]
    numbers = [
        x for name, x in itertools.chain(*attributes)
        if type(x) in (bool, int, float) and name[0] != "_"
    ]  # fmt: skip
    others = optimizer, model._compile_loss, model._compile_metrics
    return [*_variables(model), *model.trainable_variables, *others, *numbers]


def _train_step(model: Any, data: Any) -> Any:
    """Change the variables of a model by its gradient for one batch; return the metrics.

    As on JAX, a step is compiled unless the model has ``run_eagerly=True`` or
    ``jit_compile=False``: the first one creates variables, two are recorded, and later ones are
    replayed. Steps that cannot be replayed, as with random masks, call the model each time.
    """
    recorded, changed = vars(model).get("_recorded_step"), None
    is_known = recorded is not None and recorded.is_for(model)
    if is_known and recorded.run is not None:
        try:
            logs, changed = recorded.run([v.value for v in recorded.variables], data)
            for number, value in changed.items():
                recorded.variables[number]._value = value
        except Exception:  # If recording is not the cause, the step raises it again.
            recorded.run = None
    if changed is None:
        logs = _step(model, data)
    if not is_known:
        vars(model)["_recorded_step"] = _Recorded(model) if model.jit_compile else None
    # Nothing stays pending from step to step.
    dp.eval(*(v.value for v in _variables(model)))
    return logs


def _step(model: Any, data: Any) -> Any:
    from keras import StatelessScope, tree
    from keras.utils import unpack_x_y_sample_weight

    x, y, sample_weight = unpack_x_y_sample_weight(data)
    named = {"training": True} if model._call_has_training_arg else {}
    trained = list(model.trainable_variables)
    numbers = set(map(id, trained))
    others = [v for v in (*model.variables, *model.metrics_variables) if id(v) not in numbers]
    before = [v.value for v in others]

    def compute(values: Any) -> Any:
        mapping = zip((*trained, *others), (*values, *before), strict=True)
        with StatelessScope(state_mapping=mapping, collect_losses=True) as scope:
            predicted = model(x, **named)
            model._losses_override = model.losses
            loss = model._compute_loss(
                x=x, y=y, y_pred=predicted, sample_weight=sample_weight, training=True
            )
            model._losses_override = []
            scaled = loss if model.optimizer is None else model.optimizer.scale_loss(loss)
        after = map(scope.get_current_value, others)
        pairs = zip(others, before, after, strict=True)
        updates = [(v, stop_gradient(new)) for v, old, new in pairs if new is not old]
        return scaled, (stop_gradient(loss), tree.map_structure(stop_gradient, predicted), updates)

    if trained:
        differentiated = value_and_grad(compute, has_aux=True)
        (_, (loss, predicted, updates)), gradients = differentiated([v.value for v in trained])
        model.optimizer.apply(gradients, trained)
    else:
        _, (loss, predicted, updates) = compute([])
    for variable, value in updates:
        variable.assign(value)
    size = next(each for each in tree.flatten(x) if each is not None).shape[0]
    model._loss_tracker.update_state(loss, sample_weight=size)
    return model.compute_metrics(x, y, predicted, sample_weight=sample_weight)
