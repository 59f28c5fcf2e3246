"""Philox-4x32-10 compared with its published words, and the distributions built on it."""

from __future__ import annotations

import numpy as np
import pytest

import dparray as dp
from dparray.algorithms import philox_bits, philox_normal, philox_uniform
from dparray.kernels.philox import make_bits_kernel, philox

# Counter, stream, key and the four words: the known answers of the authors' Random123 library.
ALL = (1 << 64) - 1
KNOWN = [
    (0, 0, 0, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    (ALL, ALL, ALL, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (
        0x85A308D3243F6A88,
        0x0370734413198A2E,
        0x299F31D0A4093822,
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]


@pytest.mark.parametrize(("counter", "stream", "key", "words"), KNOWN)
def test_the_words_are_those_of_the_reference_implementation(counter, stream, key, words):
    out = dp.asnumpy(philox_bits(4, key, counter=counter, stream=stream))
    assert " ".join(f"{word:08x}" for word in out) == words
    simulated = np.zeros(4, np.uint32)
    dp.simulate(make_bits_kernel(philox), 1, simulated, *map(np.uint64, (counter, stream, key)))
    np.testing.assert_array_equal(simulated, out)


def test_a_sequence_can_be_made_in_pieces_of_any_shape():
    whole = dp.asnumpy(philox_bits(1003, 7))
    np.testing.assert_array_equal(dp.asnumpy(philox_bits((2, 3), 7)).ravel(), whole[:6])
    np.testing.assert_array_equal(dp.asnumpy(philox_bits(403, 7, counter=150)), whole[600:])
    assert (dp.asnumpy(philox_bits(1003, 8)) != whole).mean() > 0.99
    assert (dp.asnumpy(philox_bits(1003, 7, stream=1)) != whole).mean() > 0.99
    assert philox_bits((0, 3), 1).shape == (0, 3)


@pytest.mark.parametrize("wrong", [-1, 2**64, 1.5, "1", None])
@pytest.mark.parametrize("name", ["seed", "counter", "stream"])
def test_seeds_and_counters_are_words_of_64_bits(name, wrong):
    with pytest.raises(dp.ArgumentError, match=f"philox_bits: {name} must be an integer"):
        philox_bits(3, **{"seed": 1} | {name: wrong})


def test_distributions_that_do_not_exist_are_refused():
    for low, high in ((5, 2), (np.nan, 1), (0, np.inf), (-3e38, 3e38)):
        with pytest.raises(dp.ArgumentError, match="philox_uniform: low must not exceed high"):
            philox_uniform(3, 1, low, high)
    for deviation in (-1, np.nan):
        with pytest.raises(dp.ArgumentError, match="philox_normal: deviation"):
            philox_normal(3, 1, 0, deviation)
    with pytest.raises(
        dp.ArgumentError, match=r"mean must be a number; got ndarray .*mean.item\(\)"
    ):
        philox_normal(3, 1, dp.ones(()))
    for shape in (-3, (-2, -3), 2.5, "3"):
        with pytest.raises(dp.ShapeError):
            philox_uniform(shape, 1)


def test_the_numbers_do_not_depend_on_the_queue(queue):
    out = philox_bits(5000, 3, sycl_queue=queue, usm_type="shared")
    assert (out.queue, out.usm_type) == (queue, "shared")
    np.testing.assert_array_equal(dp.asnumpy(out), dp.asnumpy(philox_bits(5000, 3)))


def test_uniform_numbers_are_made_of_the_bits():
    bits = dp.asnumpy(philox_bits(1001, 5)).astype("u8")
    x = dp.asnumpy(philox_uniform(1001, 5))
    assert x.dtype == np.float32
    np.testing.assert_array_equal(x, ((bits >> 8) * 2.0**-24).astype("f4"))
    y = dp.asnumpy(philox_uniform(500, 5, dtype="f8"))
    words = bits[1:1000:2] << 32 | bits[:1000:2]
    np.testing.assert_array_equal(y, (words >> 11) * 2.0**-53)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_distributions(dtype):
    x = dp.asnumpy(philox_uniform((300, 1001), 1, -2, 6, dtype=dtype)).astype("f8")
    assert -2 <= x.min() < -1.99 < 5.99 < x.max() <= 6
    assert abs(x.mean() - 2) < 0.02
    assert abs(x.var() - 64 / 12) < 0.03
    z = dp.asnumpy(philox_normal((300, 1001), 1, 3, 2, dtype=dtype)).astype("f8")
    standard = (z - 3) / 2
    moments = [(standard**power).mean() for power in (1, 2, 3, 4)]
    np.testing.assert_allclose(moments, [0, 1, 0, 3], atol=0.05)
    pairs = np.corrcoef(z.ravel()[::2][:150_000], z.ravel()[1::2][:150_000])
    assert abs(pairs[0, 1]) < 0.01


def test_wrong_dtypes_are_refused():
    for function in (philox_uniform, philox_normal):
        with pytest.raises(dp.DTypeError, match="float32 or float64; got int32"):
            function(3, 1, dtype="int32")
