"""Files: NumPy's ``.npy`` and ``.npz`` formats, through a bounded host buffer."""

from __future__ import annotations

import os
import shutil
import threading
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike

from dparray import _dtypes, _hooks, _layout
from dparray._array.allocation import chosen_placement, empty_on, from_host
from dparray._array.ndarray import as_method, ndarray
from dparray._array.operands import check_array
from dparray._array.printing import corner, summary_threshold
from dparray._driver import traits_of
from dparray._functions.manipulation import ravel
from dparray._functions.public import public
from dparray._placement import Placement
from dparray.exceptions import (
    ArgumentError,
    DparrayError,
    DTypeError,
    EndOfFileError,
    ShapeError,
)

__all__ = [
    "Archive",
    "array2string",
    "array_repr",
    "array_str",
    "fromfile",
    "fromstring",
    "genfromtxt",
    "load",
    "loadtxt",
    "save",
    "savetxt",
    "savez",
    "savez_compressed",
]

#: The size of the host buffer in bytes.
BUFFER_BYTES = 16 << 20


@contextmanager
def _replacing(path: str) -> Iterator[str]:
    """Yield the name of a temporary file that replaces ``path`` once it is complete.

    After an error or an interrupt, ``path`` is unchanged.
    """
    path = os.path.realpath(path)
    exists = os.path.exists(path)
    if exists and not (os.path.isfile(path) and os.access(path, os.W_OK)):
        yield path  # a pipe or a device, or not writable, which opening it reports
        return
    root, ending = os.path.splitext(path)
    part = f"{root}.{os.getpid()}-{threading.get_ident()}.part{ending}"
    try:
        yield part
        if exists:
            shutil.copymode(path, part)
        os.replace(part, path)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(part)
        if isinstance(error, OSError) and error.filename == part:
            error.filename = path
        raise


@contextmanager
def _opened(file: Any, ending: str = "") -> Iterator[Any]:
    """Yield an open file unchanged, and for a path with this ending a file that replaces it."""
    if hasattr(file, "write"):
        yield file
    else:
        with _replacing(_with_ending(file, ending)) as part, open(part, "wb") as opened:
            yield opened


def _with_ending(file: Any, ending: str) -> str:
    path = os.fspath(file)
    return path if path.endswith(ending) else path + ending


def _report_progress(task: str, done: int, total: int) -> None:
    """Notify progress subscribers if there is more than one buffer of data."""
    if _hooks.subscribers and total > BUFFER_BYTES:
        _hooks.emit("progress", task=task, done=done, total=total)


def _name_of(file: Any) -> str:
    name = getattr(file, "name", file)
    return os.path.basename(name) if isinstance(name, str | os.PathLike) else "file"


def _write(file: Any, x: ndarray, task: str) -> None:
    is_fortran = x.ndim > 1 and not _is_c(x) and _is_c(x.T)
    header = {
        "descr": np.lib.format.dtype_to_descr(x.dtype),
        "fortran_order": is_fortran,
        "shape": x.shape,
    }
    np.lib.format.write_array_header_1_0(file, header)
    flat = ravel(x.T if is_fortran else x)
    step = max(1, BUFFER_BYTES // x.itemsize)
    for start in range(0, x.size, step):
        stop = min(start + step, x.size)
        values = flat[start:stop].asnumpy()
        # Python's buffer protocol has no bfloat16.
        values = values.view(np.uint16) if _dtypes.is_bfloat16(x.dtype) else values
        file.write(values.data.cast("B"))
        _report_progress(task, stop * x.itemsize, x.nbytes)


def _is_c(x: ndarray) -> bool:
    return _layout.is_contiguous(x.shape, x.strides, x.itemsize)


@contextmanager
def _refusing(task: str) -> Iterator[None]:
    """Convert errors of reading headers and archives: the file is damaged or of another format."""
    try:
        yield
    except DparrayError:
        raise
    except (SyntaxError, ValueError, *_DAMAGED) as error:
        raise ArgumentError(
            f"{task}: the file is damaged, or was not written by dp.save or np.save "
            f"({type(error).__name__}: {error}); write it again"
        ) from error


_DAMAGED = (EOFError, zipfile.BadZipFile, zlib.error, tokenize.TokenError)


def _read(file: Any, placement: Placement, task: str) -> ndarray:
    major, minor = np.lib.format.read_magic(file)
    if (major, minor) not in ((1, 0), (2, 0)):
        raise ValueError(f"load: the .npy format version must be 1.0 or 2.0; got {major}.{minor}")
    shape, is_fortran, dtype = getattr(np.lib.format, f"read_array_header_{major}_0")(file)
    if dtype.hasobject:
        raise DTypeError("load: the file contains Python objects, but arrays hold numbers")
    if not dtype.isnative and dtype.newbyteorder("=") in _dtypes.SUPPORTED:
        raise DTypeError(
            f"{task}: the bytes of dtype {dtype.str!r} are in non-native order; write "
            f"dp.asarray(np.load(file).astype({dtype.newbyteorder('=').name!r}))"
        )
    if dtype == np.dtype("V2"):  # NumPy's format writes bfloat16 in this way
        dtype = _dtypes.bfloat16()
    native = _dtypes.check_device(_dtypes.as_dtype(dtype), traits_of(placement.queue))
    if any(extent < 0 for extent in shape):
        raise ValueError(f"load: the header's shape {shape} has a negative size")
    extents = shape[::-1] if is_fortran else shape
    result = empty_on(placement, tuple(extents), native)
    flat = ravel(result)
    step = max(1, BUFFER_BYTES // dtype.itemsize)
    for start in range(0, result.size, step):
        count = min(step, result.size - start)
        data = _read_exactly(file, count * dtype.itemsize)
        values = np.frombuffer(data, dtype)
        flat[start : start + count] = from_host(values, *placement)
        _report_progress(task, (start + count) * dtype.itemsize, result.size * dtype.itemsize)
    return result.T if is_fortran else result


def _read_exactly(file: Any, count: int) -> bytearray:
    data = bytearray(count)
    view, done = memoryview(data), 0
    while done < count:
        part = file.read(count - done)
        if not part:
            raise ValueError(f"load: the file ends {count - done} bytes too early")
        view[done : done + len(part)] = part
        done += len(part)
    return data


@public(operands=("x",))
def save(file: str | os.PathLike[str] | IO[bytes], x: Any, allow_pickle: bool = True) -> None:
    """Write an array to a ``.npy`` file; waits for its values.

    NumPy can read the file. An existing file is replaced once the new one is complete; after an
    error or an interrupt it is unchanged.

    Args:
        file: a path, to which ``.npy`` is added if missing, or an open binary file.
        x: an array. Its values pass through a host buffer of 16 MiB.
        allow_pickle: ignored; arrays hold numbers.

    Raises:
        OSError: the file cannot be written.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> dp.save(file, dp.arange(3))
        >>> position = file.seek(0)
        >>> dp.load(file).asnumpy()
        array([0, 1, 2])
    """
    name = _name_of(file if hasattr(file, "write") else _with_ending(file, ".npy"))
    with _opened(file, ".npy") as opened:
        _write(opened, x, f"save {name}")


def savez(
    file: str | os.PathLike[str] | IO[bytes],
    *arrays: Any,
    allow_pickle: bool = True,
    **named: Any,
) -> None:
    """Write several arrays to a ``.npz`` file; waits for their values.

    NumPy can read the file. An existing file is replaced once the new one is complete, as in
    :func:`save`.

    Args:
        file: a path, to which ``.npz`` is added if missing, or an open binary file.
        *arrays: arrays, named ``arr_0``, ``arr_1`` ...
        allow_pickle: ignored; arrays hold numbers.
        **named: arrays by name. They may be on different queues.

    Raises:
        OSError: the file cannot be written.
        ValueError: a name is given twice.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> dp.savez(file, a=dp.arange(3), b=dp.ones(2))
        >>> position = file.seek(0)
        >>> sorted(dp.load(file))
        ['a', 'b']
    """
    _save_archive("savez", file, arrays, named, zipfile.ZIP_STORED)


def savez_compressed(
    file: str | os.PathLike[str] | IO[bytes],
    *arrays: Any,
    allow_pickle: bool = True,
    **named: Any,
) -> None:
    """Write several arrays to a compressed ``.npz`` file; see :func:`savez`.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> dp.savez_compressed(file, a=dp.zeros(1000))
        >>> file.tell() < 1000
        True
    """
    _save_archive("savez_compressed", file, arrays, named, zipfile.ZIP_DEFLATED)


def _save_archive(
    function: str, file: Any, arrays: tuple[Any, ...], named: dict[str, Any], compression: int
) -> None:
    members = dict(named)
    for position, x in enumerate(arrays):
        name = f"arr_{position}"
        if name in members:
            raise ValueError(
                f"{function}: {name} is also the name of a positional array; rename the keyword"
            )
        members[name] = x
    members = {name: check_array(function, name, x) for name, x in members.items()}
    with _opened(file, ".npz") as opened, zipfile.ZipFile(opened, "w", compression) as archive:
        for name, x in members.items():
            with archive.open(name + ".npy", "w", force_zip64=True) as member:
                _write(member, x, f"save {name}")


class Archive(Mapping[str, ndarray]):
    """The arrays of a ``.npz`` file by name, each read on access.

    Close it, or use it in a ``with`` statement.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> dp.savez(file, a=dp.arange(3))
        >>> position = file.seek(0)
        >>> with dp.load(file) as archive:
        ...     archive["a"].asnumpy()
        array([0, 1, 2])
    """

    def __init__(self, file: Any, placement: Placement) -> None:
        with _refusing(f"load {_name_of(file)}"):
            self._archive = zipfile.ZipFile(file)
        self._placement = placement
        self._names = [name.removesuffix(".npy") for name in self._archive.namelist()]

    @property
    def files(self) -> list[str]:
        """The names of the arrays."""
        return list(self._names)

    def __getitem__(self, name: str) -> ndarray:
        if name not in self._names:
            raise KeyError(f"{name} is not in the file; it has {', '.join(self._names)}")
        task = f"load {name}"
        with self._archive.open(name + ".npy") as member, _refusing(task):
            return _read(member, self._placement, task)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def close(self) -> None:
        """Close the file."""
        self._archive.close()

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def load(
    file: str | os.PathLike[str] | IO[bytes],
    mmap_mode: str | None = None,
    allow_pickle: bool = False,
    *,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Any = None,
) -> Any:
    """Read a ``.npy`` file of NumPy or dparray to an array, or open a ``.npz`` file.

    Args:
        file: a path or an open binary file that supports seeking.
        mmap_mode: ignored; no data stays on the host.
        allow_pickle: ignored; Python objects raise an error.
        device: the device of the arrays; the default device if not given.
        usm_type: ``"device"`` (the default), ``"shared"`` or ``"host"``.
        sycl_queue: the queue, as an alternative to ``device``.

    Returns:
        An array for ``.npy``, an :class:`Archive` for ``.npz``. Values pass through a host buffer
        of 16 MiB.

    Raises:
        ArgumentError: the file has another format, is damaged or truncated.
        DTypeError: the file does not contain numbers, or their bytes are in non-native order.
        EndOfFileError: an open file has no more arrays; a subclass of ``EOFError``, as in NumPy.
        OSError: the file cannot be read.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> dp.save(file, dp.ones(2))
        >>> position = file.seek(0)
        >>> dp.load(file, usm_type="shared").usm_type
        'shared'
    """
    placement = chosen_placement(device, usm_type, sycl_queue)
    task = f"load {_name_of(file)}"
    if isinstance(file, str | os.PathLike):
        if zipfile.is_zipfile(file):
            return Archive(file, placement)
        with open(file, "rb") as opened, _refusing(task):
            return _read(opened, placement, task)
    start = file.tell()
    magic = file.read(4)
    file.seek(start)
    if not magic:
        raise EndOfFileError(
            f"{task}: no array is left at position {start}, the end of the file; "
            "file.seek(0) returns to the first one"
        )
    if magic.startswith(b"PK"):
        return Archive(file, placement)
    with _refusing(task):
        return _read(file, placement, task)


# -- text and raw bytes ---------------------------------------------------------------------------


def _chosen(device: Any, usm_type: Any, queue: Any, dtype: Any) -> tuple[Placement, np.dtype[Any]]:
    """Return a placement and the dtype to read, by default the device's default float dtype."""
    placement = chosen_placement(device, usm_type, queue)
    if dtype is None:
        return placement, _dtypes.default_float(traits_of(placement.queue))
    return placement, _dtypes.as_dtype(dtype)


def loadtxt(
    fname: Any,
    dtype: DTypeLike | None = None,
    comments: Any = "#",
    delimiter: str | None = None,
    converters: Any = None,
    skiprows: int = 0,
    usecols: Any = None,
    unpack: bool = False,
    ndmin: int = 0,
    encoding: str | None = None,
    max_rows: int | None = None,
    *,
    quotechar: str | None = None,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Any = None,
) -> Any:
    """Read numbers from text with NumPy, one array row per line.

    Args:
        fname: a path, an open file or a sequence of lines.
        dtype: the default is the device's default float dtype.
        comments, delimiter, converters, skiprows, usecols, unpack: as in ``numpy.loadtxt``.
        ndmin, encoding, max_rows, quotechar: as in ``numpy.loadtxt``.
        device, usm_type, sycl_queue: the placement of the result, as in :func:`load`.

    Raises:
        OSError: the file cannot be read.
        ValueError: a line contains anything else.

    Example:
        >>> dp.loadtxt(["1 2", "3 4"]).asnumpy()
        array([[1., 2.],
               [3., 4.]])
    """
    placement, wanted = _chosen(device, usm_type, sycl_queue, dtype)
    values = np.loadtxt(  # type: ignore[call-overload]
        fname,
        wanted,
        comments,
        delimiter,
        converters,
        skiprows,
        usecols,
        unpack,
        ndmin,
        encoding,
        max_rows,
        quotechar=quotechar,
    )
    return from_host(values, *placement)


def genfromtxt(
    fname: Any,
    dtype: Any = float,
    *,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Any = None,
    **options: Any,
) -> ndarray:
    """Read numbers from text with missing values, which become NaN, with NumPy.

    Args:
        fname: a path, an open file or a sequence of lines.
        dtype: the default is the device's default float dtype; ``None`` lets NumPy infer it from
            the text.
        device, usm_type, sycl_queue: the placement of the result, as in :func:`load`.
        **options: as in ``numpy.genfromtxt``.

    Raises:
        DTypeError: the columns of the text have different dtypes.
        OSError: the file cannot be read.

    Example:
        >>> dp.genfromtxt(["1,2", "3,"], delimiter=",").asnumpy()
        array([[ 1.,  2.],
               [ 3., nan]])
    """
    placement, wanted = _chosen(device, usm_type, sycl_queue, None if dtype is float else dtype)
    values = np.genfromtxt(fname, None if dtype is None else wanted, **options)
    if values.dtype.names is not None:
        raise DTypeError(
            f"genfromtxt: the columns have the dtype {values.dtype}, but arrays have no fields; "
            "give dtype=float and no names=, or read columns of one dtype with usecols="
        )
    if dtype is None and values.dtype.kind == "f":
        values = values.astype(wanted, copy=False)
    return from_host(values, *placement)


@public(operands=("x",))
def savetxt(
    fname: Any,
    x: Any,
    fmt: Any = "%.18e",
    delimiter: str = " ",
    newline: str = "\n",
    header: str = "",
    footer: str = "",
    comments: str = "# ",
    encoding: str | None = None,
) -> None:
    """Write a 1-D or 2-D array as text, one row per line; waits for its values.

    Args:
        fname: a path or an open file.
        x: an array.
        fmt, delimiter, newline, header, footer, comments, encoding: as in ``numpy.savetxt``.

    Raises:
        OSError: the file cannot be written.
        ShapeError: the array does not have 1 or 2 dimensions.

    Example:
        >>> import io
        >>> file = io.StringIO()
        >>> dp.savetxt(file, dp.asarray([[1, 2], [3, 4]]), fmt="%d")
        >>> file.getvalue().split()
        ['1', '2', '3', '4']
    """
    if x.ndim not in (1, 2):
        raise ShapeError(f"savetxt: x must have 1 or 2 dimensions; it has {x.ndim}")
    values = x.asnumpy()
    options = (fmt, delimiter, newline, header, footer, comments, encoding)
    if not isinstance(fname, str | os.PathLike):
        np.savetxt(fname, values, *options)
        return
    with _replacing(os.fspath(fname)) as part:
        np.savetxt(part, values, *options)


def fromfile(
    file: Any,
    dtype: DTypeLike | None = None,
    count: int = -1,
    sep: str = "",
    offset: int = 0,
    *,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Any = None,
) -> ndarray:
    """Read a file of bytes, or with ``sep`` of text, to a vector; the inverse of ``tofile``.

    Args:
        file: a path or an open file.
        dtype: the default is the device's default float dtype.
        count: the number of elements; all if negative.
        sep: the separator of the numbers in a text file; empty for a binary file.
        offset: the number of bytes to skip at the beginning.
        device, usm_type, sycl_queue: the placement of the result, as in :func:`load`.

    Raises:
        ArgumentError: ``offset`` is not inside the file.
        OSError: the file cannot be read.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     dp.asarray([1, 2], dtype="int16").tofile(file.name)
        ...     dp.fromfile(file.name, "int16").asnumpy()
        array([1, 2], dtype=int16)
    """
    placement, wanted = _chosen(device, usm_type, sycl_queue, dtype)
    if offset and not sep and isinstance(file, str | os.PathLike):
        nbytes = os.path.getsize(file)
        if not 0 <= offset <= nbytes:
            raise ArgumentError(
                f"fromfile: offset must be from 0 to {nbytes}, the file size; got {offset}"
            )
    return from_host(np.fromfile(file, wanted, count, sep, offset), *placement)


def fromstring(
    string: str,
    dtype: DTypeLike | None = None,
    count: int = -1,
    *,
    sep: str,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Any = None,
) -> ndarray:
    """Read the numbers in a string to a vector.

    Args:
        string: the string.
        dtype: the default is the device's default float dtype.
        count: the number of elements; all if negative.
        sep: the separator of the numbers. (For bytes use :func:`frombuffer`.)
        device, usm_type, sycl_queue: the placement of the result, as in :func:`load`.

    Raises:
        ArgumentError: the string contains anything else, or ``sep`` is empty.

    Example:
        >>> dp.fromstring("1, 2", sep=",").asnumpy()
        array([1., 2.])
    """
    if not sep:
        raise ArgumentError("fromstring: sep must not be empty; for bytes use dp.frombuffer")
    placement, wanted = _chosen(device, usm_type, sycl_queue, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            values = np.fromstring(string, wanted, count, sep=sep)
            found = np.fromstring(string, wanted, sep=sep)
        except (ValueError, DeprecationWarning) as error:
            raise ArgumentError(f"fromstring: {error}") from None
    if found.size < values.size:  # the remaining elements were never written
        raise ArgumentError(f"fromstring: count is {count}, but there are {found.size} numbers")
    return from_host(values, *placement)


@as_method
def tofile(self: ndarray, fid: Any, sep: str = "", format: str = "%s") -> None:
    """Write the values in C order as bytes, or with ``sep`` as text; waits for them.

    They pass through a host buffer of 16 MiB. Shape and dtype are not written; :func:`dparray.save`
    keeps them.
    """
    flat = ravel(self)
    step = max(1, BUFFER_BYTES // self.itemsize)
    if isinstance(fid, str | os.PathLike):
        with _replacing(os.fspath(fid)) as part, open(part, "wb") as opened:
            tofile(self, opened, sep, format)
        return
    for start in range(0, max(self.size, 1), step):
        if start and sep:
            fid.write(sep.encode())
        flat[start : start + step].asnumpy().tofile(fid, sep, format)


# -- printing -------------------------------------------------------------------------------------


@public()
def array2string(
    x: Any, max_line_width: int | None = None, precision: int | None = None, **options: Any
) -> str:
    """Format an array as a string; a large one is summarized. Options as in ``numpy.array2string``.

    Example:
        >>> dp.array2string(dp.asarray([1.0, 2.5]), precision=1)
        '[1.  2.5]'
    """
    current = dict(np.get_printoptions())
    given = {key: value for key, value in options.items() if value is not None}
    current.update({key: value for key, value in given.items() if key in current})
    options["threshold"] = summary_threshold(x, current)
    options["edgeitems"] = current["edgeitems"]
    return np.array2string(corner(x, current), max_line_width, precision, **options)


@public()
def array_str(
    x: Any,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """Return the values of an array as a string.

    Example:
        >>> dp.array_str(dp.arange(3))
        '[0 1 2]'
    """
    if not x.shape:
        return str(x)
    return array2string(x, max_line_width, precision, suppress_small=suppress_small)


@public()
def array_repr(
    x: Any,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """Return the result of :func:`repr` with another precision.

    Example:
        >>> dp.array_repr(dp.asarray([1.25]), precision=1).startswith("array([1.2]")
        True
    """
    chosen: dict[str, Any] = {"precision": precision, "suppress": suppress_small}
    chosen["linewidth"] = max_line_width
    with np.printoptions(**{key: value for key, value in chosen.items() if value is not None}):
        return repr(x)
