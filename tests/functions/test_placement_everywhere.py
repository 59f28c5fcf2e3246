"""Compute follows data, in every public function that takes several arrays.

The test visits all namespaces. It fails for a function with an unknown parameter, so that every new
function is tested.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.support import names_in

NAMESPACES = {"dp": dp, "dp.linalg": dp.linalg}
NAMESPACES |= {f"dp.{name}": getattr(dp, name) for name in ("fft", "random")}

MATRIX = np.asarray([[2.0, 1.0], [1.0, 3.0]])
VECTOR = np.asarray([1.0, 2.0])
INTEGERS = np.asarray([1, 0])
MASK = np.asarray([True, False])

#: Parameters that take an array, with a value that most functions can use.
ARRAYS: dict[str, Any] = {
    **dict.fromkeys(("fweights", "ind", "indices", "repeats", "sorter"), INTEGERS),
    **dict.fromkeys(
        names_in(
            """
            a a1 a2 append aweights dst fp max min prepend src to_begin to_end u v vals values w
            weights x x1 x2 xp y
            """
        ),
        VECTOR,
    ),
    **dict.fromkeys(("condition", "mask", "where"), MASK),
    **dict.fromkeys(("fill_value", "val", "value"), np.asarray(3.0)),
    "out": None,
    "q": np.asarray([0.25, 0.5]),
    **dict.fromkeys(("rtol", "tol"), np.asarray(0.001)),
}
#: Parameters that take a sequence of arrays.
SEQUENCES = {"arrays", "keys"}
#: Parameters that do not take an array, among them those of `distribute` and of functions that pad
#: calls, `b`, `c_and_lower` and `lu_and_piv` of the solvers after a factorization, legacy names,
#: and `out1` and `out2`, which tests/functions/test_missing_options.py tests.
OTHERS = names_in(
    """
    a a_max a_min allow_pickle arg1 arg2 args assume_unique atol axes axis axis1 axis2 axisa
    axisb axisc b base beta bias bins bitorder bools buffer c_and_lower cache casting
    check_finite comments compute_uv constant_values converters copy correction count cov d ddof
    decimals default deg delimiter density descending destination device devices dimensions
    discont doc dtype dx edge_order encoding end_values endpoint equal_nan excluded file fmt
    fname footer from_ full full_matrices function halo header hermitian high include_initial
    increasing ind index_space indexing indices_or_sections initial invert iterable k keepdims
    keywords kind kth kwargs left like loc low lower lu_and_piv M m mask_func max_line_width
    max_rows mean method minlength mmap_mode mode N n n_cols n_rows name named nan ndim ndmin
    neginf new_shape newline norm num obj offset optimize options ord order otypes out1 out2
    overwrite_a overwrite_b overwrite_input p p_indices pad_width period permute_l place posinf
    precision pyfunc queues quotechar range rcond reflect_type repetitions replace reps
    requirements retstep return_counts return_index return_indices return_inverse returned right
    rowvar s scale seed sep shape shapes shell shift shuffle side signature size sizes skiprows
    sorted source spacing sparse stable start stat_length step stop string subok subscripts
    suppress_small sycl_queue to trans trim type type1 type2 unit_diagonal unpack UPLO upper
    usecols usm_type usm_types wrap
    """
)

#: Functions that need special values for some parameters.
VALUES: dict[str, dict[str, Any]] = {
    "dp.allclose": {"x1": VECTOR, "x2": VECTOR},
    "dp.append": {"x": VECTOR, "values": VECTOR},
    "dp.bitwise_count": {"x": INTEGERS, "out": INTEGERS.astype("uint8"), "where": MASK},
    "dp.bincount": {"x": INTEGERS, "weights": VECTOR},
    "dp.cross": {"x1": np.ones(3), "x2": np.ones(3)},
    "dp.delete": {"x": VECTOR, "obj": INTEGERS},
    "dp.digitize": {"x": VECTOR, "bins": VECTOR},
    "dp.fill_diagonal": {"x": MATRIX, "val": np.asarray(3.0)},
    "dp.fromfunction": {},
    "dp.frexp": {"x": VECTOR, "where": MASK},
    "dp.full_like": {"x": VECTOR, "fill_value": np.asarray(3.0)},
    "dp.gcd": {"x1": INTEGERS, "x2": INTEGERS},
    "dp.gradient": {"x": VECTOR, "spacing": np.asarray([0.0, 1.0])},
    "dp.histogram": {"x": VECTOR, "bins": VECTOR, "weights": VECTOR},
    "dp.histogram2d": {"x": VECTOR, "y": VECTOR, "weights": VECTOR},
    "dp.histogramdd": {"x": VECTOR, "weights": VECTOR},
    "dp.histogram_bin_edges": {"x": VECTOR, "bins": VECTOR},
    "dp.insert": {"x": VECTOR, "obj": INTEGERS, "values": VECTOR},
    "dp.isclose": {"x1": VECTOR, "x2": VECTOR},
    "dp.lcm": {"x1": INTEGERS, "x2": INTEGERS},
    "dp.ldexp": {"x1": VECTOR, "x2": INTEGERS, "out": VECTOR, "where": MASK},
    "dp.linalg.cross": {"x1": np.ones(3), "x2": np.ones(3)},
    "dp.linalg.lstsq": {"x1": MATRIX, "x2": VECTOR},
    "dp.linalg.matrix_rank": {"x": MATRIX, "rtol": np.asarray(1e-3)},
    "dp.linalg.pinv": {"x": MATRIX, "rtol": np.asarray(1e-3)},
    "dp.linalg.solve": {"x1": MATRIX, "x2": VECTOR},
    "dp.linalg.solve_triangular": {"x1": MATRIX, "x2": VECTOR},
    "dp.linalg.tensorinv": {"x": MATRIX},
    "dp.linalg.tensordot": {"x1": MATRIX, "x2": MATRIX},
    "dp.linalg.tensorsolve": {"x1": MATRIX, "x2": VECTOR},
    "dp.matvec": {"x1": MATRIX, "x2": VECTOR},
    "dp.modf": {"x": VECTOR, "where": MASK},
    "dp.place": {"x": VECTOR, "mask": MASK, "vals": VECTOR},
    "dp.polyfit": {"x": VECTOR, "y": VECTOR, "w": VECTOR},
    "dp.polyval": {"x": VECTOR, "p": VECTOR},
    "dp.real_if_close": {"x": VECTOR},
    "dp.vecmat": {"x1": VECTOR, "x2": MATRIX},
    "dp.put": {"x": VECTOR, "ind": INTEGERS, "v": VECTOR},
    "dp.put_along_axis": {"x": VECTOR, "indices": INTEGERS, "values": VECTOR},
    "dp.putmask": {"x": VECTOR, "mask": MASK, "values": VECTOR},
    "dp.ravel_multi_index": {"arrays": "sequence"},
    "dp.tensordot": {"x1": MATRIX, "x2": MATRIX},
    "dp.trace": {"x": MATRIX, "out": np.asarray(0.0)},
    "dp.unravel_index": {"indices": INTEGERS},
}
OTHER_ARGUMENTS: dict[str, dict[str, Any]] = {
    "dp.compress": {"axis": 0},
    "dp.polyfit": {"deg": 1},
    "dp.put_along_axis": {"axis": 0},
    "dp.einsum": {"subscripts": "i,i->i"},
    "dp.ravel_multi_index": {"shape": (2, 2)},
}
for _name in ("percentile", "quantile", "nanpercentile", "nanquantile"):
    VALUES[f"dp.{_name}"] = {"x": VECTOR, "q": np.asarray(0.5), "weights": VECTOR}
    VALUES[f"dp.{_name}"]["out"] = np.asarray(0.0)
    OTHER_ARGUMENTS[f"dp.{_name}"] = {"method": "inverted_cdf"}
for _name in ("amax", "amin", "max", "min", "nanmax", "nanmin"):
    OTHER_ARGUMENTS[f"dp.{_name}"] = {"initial": 0.0}
for _name in ("fft2", "ifft2", "rfft2", "irfft2"):
    VALUES[f"dp.fft.{_name}"] = {"x": MATRIX, "out": None}
SEQUENCE_VALUES = {"dp.ravel_multi_index": INTEGERS}
for _name in ("and", "or", "xor", "left_shift", "right_shift"):
    VALUES[f"dp.bitwise_{_name}"] = {"x1": INTEGERS, "x2": INTEGERS}
for _name in ("left_shift", "right_shift"):
    VALUES[f"dp.{_name}"] = {"x1": INTEGERS, "x2": INTEGERS}
for _name in ("bitwise_invert", "bitwise_not", "invert"):
    VALUES[f"dp.{_name}"] = {"x": INTEGERS, "out": np.zeros_like(INTEGERS)}
SCALAR_OUT = names_in("all any argmax argmin logsumexp max mean min prod ptp std sum var amax amin")
for _name in SCALAR_OUT:
    kind = bool if _name in ("all", "any") else int if _name.startswith("arg") else float
    operand = "x" if _name == "logsumexp" else "a"
    VALUES[f"dp.{_name}"] = {operand: VECTOR, "out": np.zeros((), kind)}
    if _name not in ("argmax", "argmin", "logsumexp", "ptp"):
        VALUES[f"dp.{_name}"]["where"] = MASK

#: Functions whose arrays are tested elsewhere, with the reason.
ELSEWHERE = {
    "dp.shares_memory": "compares memory of any queues",
    "dp.may_share_memory": "compares memory of any queues",
    "dp.common_type": "looks at dtypes only",
    "dp.einsum_path": "looks at shapes only",
    "dp.vectorize": "makes functions; tests/functions/test_beyond_the_standard.py",
    "dp.piecewise": "takes a sequence beside an array; tested below",
    "dp.choose": "takes a sequence beside an array; tested below",
    "dp.savez_compressed": "writes each array by itself",
    "dp.savez": "writes each array by itself",
    "dp.array": "asarray under another name",
    "dp.reduction": "makes functions; tests/functions/test_user_functions.py",
    "dp.elementwise": "makes functions; tests/functions/test_user_functions.py",
    "dp.implement": "takes a function; tests/evaluate/test_implementations.py",
    "dp.select": "takes two sequences; tested below",
    "dp.asarray": "takes one object; sequences of arrays are tested below",
    "dp.from_dlpack": "takes one object",
    "dp.call_kernel": "tests/kernel/test_kernel_launch.py",
    "dp.call_kernel_async": "tests/kernel/test_kernel_launch.py",
    "dp.eval": "computes each array on its own queue",
    "dp.explain": "tells of each array on its own queue",
    "dp.kernel": "takes no array",
    "dp.result_type": "looks at dtypes only",
    "dp.simulate": "tests/simulator/test_simulate.py",
    "dp.device_func": "takes no array",
}
ELSEWHERE |= {
    f"dp.{name}": "calls a function with its own operands; tests/gradients/test_statements.py"
    for name in names_in(
        """
        checkpoint custom_gradient differentiable grad hessian hvp jacobian jvp linearize
        stop_gradient value_and_grad vjp
        """
    )
}
ELSEWHERE |= {f"dp.random.{name}": "tests/functions/test_random.py" for name in dp.random.__all__}

Call = Callable[[Callable[[str], Any]], Any]


def public_functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    kernel_language = set(dp.kernel_api.__all__)
    for place, namespace in NAMESPACES.items():
        for name in sorted(getattr(namespace, "__all__", None) or dir(namespace)):
            value = getattr(namespace, name)
            if (
                inspect.isfunction(value)
                and value.__module__.startswith("dparray")
                and not name.startswith("_")
                and name not in kernel_language
                and f"{place}.{name}" not in ELSEWHERE
            ):
                yield f"{place}.{name}", value


def array_parameters(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    """Return the parameters that take arrays, with values (``None`` for ``out``)."""
    if name in VALUES:
        return VALUES[name]
    parameters = inspect.signature(function).parameters
    return {parameter: ARRAYS.get(parameter) for parameter in parameters if parameter in ARRAYS} | {
        parameter: "sequence" for parameter in parameters if parameter in SEQUENCES
    }


def takes_sequence(parameters: dict[str, Any]) -> bool:
    return any(isinstance(value, str) for value in parameters.values())


SEVERAL = [
    (name, function, parameters)
    for name, function in public_functions()
    if len(parameters := array_parameters(name, function)) > 1 or takes_sequence(parameters)
]
CASES = [pytest.param(*item, id=item[0]) for item in SEVERAL]


@pytest.mark.static
def test_every_parameter_is_listed() -> None:
    known = OTHERS | ARRAYS.keys() | SEQUENCES
    unknown = {
        name: unknown
        for name, function in public_functions()
        if (unknown := inspect.signature(function).parameters.keys() - known)
    }
    assert not unknown, "say in this test whether these parameters take arrays"


def pairs() -> dict[str, tuple[Any, Any, str]]:
    device = dp.Device("cpu")
    first, second = device.create_sub_devices(partition=1)[:2]
    extra = device.new_queue()
    return {
        "sub-devices": (first, second, "different sub-devices of one device"),
        "queues": (device, extra, "same device, different queues"),
        "device-and-sub-device": (device, first, "a device and a sub-device of it"),
    }


PAIRS = pairs()


def call(
    name: str, function: Callable[..., Any], parameters: dict[str, Any], place: Callable[[str], Any]
) -> tuple[dict[str, dp.ndarray], Callable[[], Any]]:
    """Return the arrays by parameter, each on the queue of its name, and the call with them."""
    arrays: dict[str, dp.ndarray] = {}
    for parameter, value in parameters.items():
        if isinstance(value, str):
            for position in range(2):
                full = f"{parameter}[{position}]"
                arrays[full] = dp.asarray(SEQUENCE_VALUES.get(name, VECTOR), **place(full))
        elif parameter != "out" or value is not None:
            arrays[parameter] = dp.asarray(value, **place(parameter))
    if "out" in parameters and parameters["out"] is None:
        plain = {
            parameter: dp.asarray(value)
            for parameter, value in parameters.items()
            if isinstance(value, np.ndarray)
        }
        sequence = [dp.asarray(SEQUENCE_VALUES.get(name, VECTOR))] * 2
        result = invoke(name, function, plain, sequence)
        arrays["out"] = dp.zeros(result.shape, result.dtype, **place("out"))
    named = {parameter: x for parameter, x in arrays.items() if "[" not in parameter}
    sequence = [x for parameter, x in arrays.items() if "[" in parameter]
    return arrays, lambda: invoke(name, function, named, sequence)


def invoke(
    name: str, function: Callable[..., Any], named: dict[str, dp.ndarray], sequence: list[Any]
) -> Any:
    positional: list[Any] = []
    keywords: dict[str, Any] = dict(OTHER_ARGUMENTS.get(name, {}))
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in SEQUENCES:
            if parameter.kind is parameter.VAR_POSITIONAL:
                positional += sequence
            else:
                positional.append(sequence)
        elif parameter.name in keywords and parameter.name == "subscripts":
            positional.append(keywords.pop("subscripts"))
        elif parameter.name in named:
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
                positional.append(named[parameter.name])
            else:
                keywords[parameter.name] = named[parameter.name]
    return function(*positional, **keywords)


@pytest.mark.parametrize("case", sorted(PAIRS))
@pytest.mark.parametrize(("name", "function", "parameters"), CASES)
def test_arrays_on_different_queues_are_refused(
    name: str, function: Callable[..., Any], parameters: dict[str, Any], case: str
) -> None:
    here, there, words = PAIRS[case]
    arrays, _ = call(name, function, parameters, lambda _: {"device": here})
    for stranger in list(arrays)[1:]:
        arrays, invocation = call(
            name,
            function,
            parameters,
            lambda parameter, odd=stranger: {"device": there if parameter == odd else here},
        )
        before = {parameter: x.asnumpy() for parameter, x in arrays.items()}
        with pytest.raises(dp.ExecutionPlacementError) as caught:
            invocation()
        error, message = caught.value, str(caught.value)
        assert error.function == function.__name__
        assert message.startswith(f"{function.__name__}: ")
        assert words in message
        mentioned = {operand[0] for operand in error.operands}
        assert mentioned <= arrays.keys()
        assert len(mentioned) > 1
        assert stranger in mentioned
        for device in (here, there):
            assert all(part in message for part in str(device).rsplit(", ", 1))
        assert ".to_device(" in error.remedy
        assert error.remedy in message
        for parameter, x in arrays.items():
            np.testing.assert_array_equal(x.asnumpy(), before[parameter])


def results_of(value: Any) -> Iterator[dp.ndarray]:
    if isinstance(value, dp.ndarray):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from results_of(part)


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [(("host", "shared"), "shared"), (("shared", "device"), "device"), (("host", "host"), "host")],
)
@pytest.mark.parametrize(("name", "function", "parameters"), CASES)
def test_the_result_is_on_the_common_queue_with_the_coerced_usm_type(
    name: str,
    function: Callable[..., Any],
    parameters: dict[str, Any],
    kinds: tuple[str, str],
    expected: str,
) -> None:
    inputs = {parameter: v for parameter, v in parameters.items() if parameter != "out"}
    if len(inputs) < 2 and not takes_sequence(inputs):
        kinds, expected = (kinds[0], kinds[0]), kinds[0]
    queue = dp.Device("cpu").new_queue().queue
    first: list[str] = []

    def place(parameter: str) -> dict[str, Any]:
        first.append(parameter)
        return {"sycl_queue": queue, "usm_type": kinds[parameter != first[0]]}

    _, invocation = call(name, function, inputs, place)
    results = list(results_of(invocation()))
    views = name == "dp.broadcast_arrays" or name == "dp.ix_" or "atleast" in name
    for result in results:
        assert result.queue == queue
        if not views and name != "dp.full_like":
            assert result.usm_type == expected


def test_arrays_inside_a_sequence_are_checked() -> None:
    here, there, words = PAIRS["sub-devices"]
    a, b = dp.ones(2, device=here), dp.ones(2, device=there)
    with pytest.raises(dp.ExecutionPlacementError, match=words):
        dp.asarray([a, b])
    with pytest.raises(dp.ExecutionPlacementError, match=words):
        dp.select([a > 0], [b], 0)
    with pytest.raises(dp.ExecutionPlacementError, match=words):
        dp.choose(dp.zeros(2, "int64", device=here), [a, b])
    with pytest.raises(dp.ExecutionPlacementError, match=words):
        dp.piecewise(a, [b > 0], [1.0])


INDEXING = {
    "x[index]": lambda a, b: a[b],
    "x[index, :]": lambda a, b: a[b, None],
    "x[index] = 0": lambda a, b: a.__setitem__(b, 0),
    "x[:] = value": lambda a, b: a.__setitem__(slice(None), b),
    "x[0] = value": lambda a, b: a.__setitem__([0, 1], b),
    "x + y": lambda a, b: a + b,
    "x += y": lambda a, b: a.__iadd__(b),
    "x @ y": lambda a, b: a @ b,
    "x == y": lambda a, b: a == b,
}


@pytest.mark.parametrize("case", sorted(PAIRS))
@pytest.mark.parametrize("expression", sorted(INDEXING))
def test_operators_and_indexing_are_checked(expression: str, case: str) -> None:
    here, there, words = PAIRS[case]
    a, b = dp.asarray([1, 2], device=here), dp.asarray([1, 0], device=there)
    with pytest.raises(dp.ExecutionPlacementError, match=words):
        INDEXING[expression](a, b)
    np.testing.assert_array_equal(a.asnumpy(), [1, 2])
    np.testing.assert_array_equal(b.asnumpy(), [1, 0])


NUMPY = [item for item in SEVERAL if "x2" in item[2] and "condition" not in item[2]]


@pytest.mark.parametrize(
    ("name", "function", "parameters"), [pytest.param(*item, id=item[0]) for item in NUMPY]
)
def test_numpy_arrays_are_refused(
    name: str, function: Callable[..., Any], parameters: dict[str, Any]
) -> None:
    with pytest.raises(dp.HostConversionError, match=r"dp\.asarray"):
        function(dp.asarray(parameters["x1"]), parameters["x2"])
