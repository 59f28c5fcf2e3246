"""The cases of ONNX's own conformance suite, and functions that run them."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import dparray as dp

#: The parts of the suite that are files; the part "node" is Python modules, one for each operator.
FOLDERS = ("simple", "pytorch-converted", "pytorch-operator")


def parts() -> list[str]:
    """Return the names of the parts of the suite, without computing their cases."""
    from onnx.backend.test.case import node

    modules = pkgutil.iter_modules(node.__path__, node.__name__ + ".")
    return [*FOLDERS, *(each.name.rpartition(".")[2] for each in modules)]


def cases_of(part: str) -> list[Any]:
    """Return the cases of a part."""
    from onnx.backend.test.case import node
    from onnx.backend.test.loader import load_model_tests

    if part in FOLDERS:
        return sorted(load_model_tests(kind=part), key=lambda case: case.name)
    if part not in _known:
        before = len(node._NodeTestCases)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Importing a module computes its cases, and those of modules that it imports.
            module = importlib.import_module(f"{node.__name__}.{part}")
            for inner in pkgutil.iter_modules(getattr(module, "__path__", [])):
                importlib.import_module(f"{module.__name__}.{inner.name}")
        _known[part] = node._NodeTestCases[before:]
    return _known[part]


_known: dict[str, list[Any]] = {}


def _value(proto: Any, kind: Any) -> Any:
    from onnx import numpy_helper

    if isinstance(proto, np.ndarray | list | np.generic) or proto is None:
        return proto
    name = type(proto).__name__
    if name == "TensorProto":
        return numpy_helper.to_array(proto)
    return (numpy_helper.to_list if name == "SequenceProto" else numpy_helper.to_optional)(proto)


def _read(path: Path, kind: Any) -> Any:
    import onnx

    which = kind.WhichOneof("value")
    proto = {
        "sequence_type": onnx.SequenceProto, "optional_type": onnx.OptionalProto
    }.get(which, onnx.TensorProto)()  # fmt: skip
    proto.ParseFromString(path.read_bytes())
    return _value(proto, kind)


def data_sets(case: Any, model: Any) -> Any:
    """Iterate over the inputs and outputs of a case."""
    graph = model.graph
    if case.data_sets is not None:
        for inputs, outputs in case.data_sets:
            yield [_value(x, None) for x in inputs], [_value(x, None) for x in outputs]
        return
    for folder in sorted(Path(case.model_dir).glob("test_data_set_*")):
        both = []
        for kind, infos in (("input", graph.input), ("output", graph.output)):
            files = sorted(folder.glob(f"{kind}_*.pb"), key=lambda p: int(p.stem.split("_")[1]))
            both.append([_read(path, info.type) for path, info in zip(files, infos, strict=False)])
        yield tuple(both)


def run_case(case: Any) -> None:
    """Run a case three times, by its nodes, its recorded calls and its bound plans."""
    import onnx

    model = case.model
    if model is None:
        model = onnx.load(str(Path(case.model_dir) / "model.onnx"))
    loaded = dp.onnx.load(model)
    names = [each.name for each in model.graph.input]
    for inputs, wanted in data_sets(case, model):
        given = dict(zip(names, inputs, strict=False))
        for _ in range(3):
            made = loaded.run(given)
            for value, expected in zip(made.values(), wanted, strict=True):
                compare(value, expected, case)


def compare(value: Any, expected: Any, case: Any) -> None:
    """Compare a result with the expected one, as the suite's own runner does."""
    if isinstance(expected, list):
        assert len(value) == len(expected)
        for inner, other in zip(value, expected, strict=True):
            compare(inner, other, case)
        return
    if expected is None:
        assert value is None
        return
    host = value.asnumpy() if isinstance(value, dp.ndarray) else np.asarray(value)
    expected = np.asarray(expected)
    assert host.shape == expected.shape
    if expected.dtype.kind in "OUS":
        assert (
            host.tolist()
            == [each.decode() if isinstance(each, bytes) else each for each in expected.reshape(-1)]
            if expected.ndim == 1
            else np.array_equal(host.astype(str), expected.astype(str))
        )
        return
    assert host.dtype == expected.dtype
    if host.dtype.kind == "V" or host.dtype.name.startswith(
        ("bfloat", "float8", "float4", "int", "uint")
    ):
        host, expected = host.astype("float64"), expected.astype("float64")
    np.testing.assert_allclose(host, expected, rtol=case.rtol, atol=case.atol)
