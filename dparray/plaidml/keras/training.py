"""Training of Keras models: gradients by :func:`dparray.value_and_grad`.

A training step calls the model in Keras' stateless scope, in which variables have the traced values
of the transformation and assignments are collected. ``fit`` and methods for one batch are those of
Keras' trainer for PyTorch, whose file is executed with a stand-in for the few names of PyTorch.
"""

from __future__ import annotations

import builtins
import contextlib
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from dparray.gradients import stop_gradient, value_and_grad
from dparray.gradients.public import dp


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


def _train_step(model: Any, data: Any) -> Any:
    """Change the variables of a model by its gradient for one batch; return the metrics."""
    from keras import StatelessScope, tree
    from keras.utils import unpack_x_y_sample_weight

    x, y, sample_weight = unpack_x_y_sample_weight(data)
    named = {"training": True} if model._call_has_training_arg else {}
    trained = list(model.trainable_variables)
    numbers = set(map(id, trained))
    others = [v for v in (*model.variables, *model.metrics_variables) if id(v) not in numbers]

    def compute(values: Any) -> Any:
        mapping = list(zip(trained, values, strict=True))
        with StatelessScope(state_mapping=mapping, collect_losses=True) as scope:
            predicted = model(x, **named)
            model._losses_override = model.losses
            loss = model._compute_loss(
                x=x, y=y, y_pred=predicted, sample_weight=sample_weight, training=True
            )
            model._losses_override = []
            scaled = loss if model.optimizer is None else model.optimizer.scale_loss(loss)
        changed = [(v, scope.get_current_value(v)) for v in others]
        updates = [(v, stop_gradient(value)) for v, value in changed if value is not None]
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
    logs = model.compute_metrics(x, y, predicted, sample_weight=sample_weight)
    # Nothing stays pending from step to step.
    dp.eval(*(v.value for v in (*model.variables, *model.metrics_variables)))
    return logs
