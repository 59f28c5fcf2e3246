"""Finding drivers, and making numba-dpex usable as a kernel compiler on this stack.

State: the environment variable that names the OpenCL driver, the finder behind
``dpctl.tensor``, and the module ``numba_dpex`` in ``sys.modules``, which stays empty until
something of it is needed. Importing this module imports no SYCL package and no Numba.
"""

from __future__ import annotations

import contextlib
import glob
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import re
import site
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from dparray.exceptions import UnsupportedFeatureError

_DRIVER_VARIABLE = "OCL_ICD_FILENAMES"
_DRIVER_LIBRARY = "libintelocl.so"
_SYSTEM_DRIVERS = Path("/etc/OpenCL/vendors")


def find_driver() -> Path | None:
    """The OpenCL CPU driver that ships in this Python environment, or ``None``."""
    prefixes = [sys.prefix, sys.exec_prefix, site.getuserbase() if site.ENABLE_USER_SITE else ""]
    for prefix in prefixes:
        candidate = Path(prefix, "lib", _DRIVER_LIBRARY)
        if prefix and candidate.is_file():
            return candidate
    return None


def _system_has_cpu_driver() -> bool:
    for entry in _SYSTEM_DRIVERS.glob("*.icd"):
        with contextlib.suppress(OSError):
            if "libintelocl" in entry.read_text():
                return True
    return False


def prepare_driver() -> None:
    """Let the OpenCL loader find the CPU driver of this environment.

    Must run before the first ``import dpctl``. A value that the user set is left alone, and
    drivers registered under ``/etc/OpenCL/vendors`` stay visible beside ours; where one of them
    is the same driver, nothing is added, because the device would appear twice.
    """
    if _DRIVER_VARIABLE in os.environ or _system_has_cpu_driver():
        return
    driver = find_driver()
    if driver is not None:
        os.environ[_DRIVER_VARIABLE] = str(driver)


# --- dpctl.tensor, which lives on as dpnp.tensor --------------------------------------------------


class _TensorAlias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds ``dpctl.tensor`` and its modules in ``dpnp.tensor`` when dpctl has none itself."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname == "dpctl.tensor" or fullname.startswith("dpctl.tensor."):
            return importlib.machinery.ModuleSpec(fullname, self)
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        # The import system takes what stands in sys.modules after this call.
        name = module.__name__
        sys.modules[name] = importlib.import_module("dpnp" + name.removeprefix("dpctl"))


# --- numba_dpex -----------------------------------------------------------------------------------

_REPLACED_BY = {
    "dpjit": "write the loop as array functions of dparray, or as a kernel with dparray.kernel",
    "prange": "write the loop body as a kernel with dparray.kernel and launch it over a Range",
}
# Options that numba-dpex stores on Numba's compiler flags as plain attributes.
_FLAGS_OF_NUMBA_DPEX = (
    "_compilation_mode",
    "_parfor_body_args",
    "experimental",
    "inline_threshold",
    "no_compile",
    "release_gil",
)
_BUILTIN_IMPLEMENTATIONS = (
    "core.optional",
    "cpython.builtins",
    "cpython.enumimpl",
    "cpython.hashing",
    "cpython.iterators",
    "cpython.numbers",
    "cpython.rangeobj",
    "cpython.slicing",
    "cpython.tupleobj",
    "misc.literal",
    "np.arraymath",
    "np.arrayobj",
)
_load_lock = threading.RLock()


class _LazyPackage(types.ModuleType):
    """A package of numba-dpex before its ``__init__`` has run.

    Its sub-modules can be imported already, so that ``numba_dpex.kernel_api``, which is plain
    Python, loads without Numba. Any other attribute runs numba-dpex.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__") and name != "__version__":
            raise AttributeError(name)
        if name == "kernel_api":
            return importlib.import_module("numba_dpex.kernel_api")
        load_numba_dpex()
        return getattr(sys.modules[self.__name__], name)


def _add_lazy_package(name: str) -> None:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.submodule_search_locations is None:
        raise ModuleNotFoundError(
            "dparray compiles kernels with the package numba-dpex, which is not installed; "
            "pip install numba-dpex",
            name="numba_dpex",
        )
    module = _LazyPackage(name)
    module.__file__ = spec.origin
    module.__path__ = list(spec.submodule_search_locations)
    module.__package__ = name
    module.__loader__ = spec.loader
    module.__spec__ = spec
    sys.modules[name] = module


def _refused(name: str) -> Callable[..., Any]:
    """What stands in for a function of numba-dpex that cannot work; calling it is the error."""

    def refused(*args: Any, **options: Any) -> Any:
        raise UnsupportedFeatureError(
            f"numba_dpex.{name}: it needs numba-dpex's own runtime library, which does not load "
            f"beside this dpctl; {_REPLACED_BY[name]}."
        )

    refused.__name__ = refused.__qualname__ = name
    return refused


def _dpjit(function: Any = None, **options: Any) -> Any:
    """Decorates as ``numba_dpex.dpjit`` does, so that modules import; the call is the error."""
    return _refused("dpjit") if callable(function) else _dpjit


def prepare_numba_dpex() -> None:
    """Put the lazy ``numba_dpex`` and the alias ``dpctl.tensor`` in place; cheap, idempotent."""
    if not any(isinstance(finder, _TensorAlias) for finder in sys.meta_path):
        sys.meta_path.append(_TensorAlias())
    if "numba_dpex" not in sys.modules:
        _add_lazy_package("numba_dpex")
        # kernel_api needs the exceptions in core, and nothing else of it.
        _add_lazy_package("numba_dpex.core")


def kernel_language() -> Any:
    """The module ``numba_dpex.kernel_api``; importing it does not import Numba."""
    prepare_numba_dpex()
    return importlib.import_module("numba_dpex.kernel_api")


def load_numba_dpex() -> types.ModuleType:
    """The package ``numba_dpex``, adapted to this stack; the first call imports Numba."""
    prepare_numba_dpex()
    package = sys.modules["numba_dpex"]
    if type(package) is not _LazyPackage:
        return package
    with _load_lock:
        if type(package) is _LazyPackage:
            _run_package(package)
    return package


def _run_package(package: types.ModuleType) -> None:
    prepare_driver()
    _stand_in_for_runtime_library()
    _adapt_dpnp()
    _adapt_numba_flags()
    spec = package.__spec__
    assert spec is not None and spec.loader is not None
    del sys.modules["numba_dpex.core"]
    with _renamed_sycl_interface():
        spec.loader.exec_module(package)
    if "numba_dpex.core.exceptions" in sys.modules:
        core: Any = sys.modules["numba_dpex.core"]
        core.exceptions = sys.modules["numba_dpex.core.exceptions"]
    _adapt_dispatcher()
    _adapt_code_generation()
    _adapt_translation()
    _adapt_enumerations()
    _replace_launchers(package)
    _prepare_contexts()
    # From here on a missing attribute is an ordinary AttributeError.
    package.__class__ = types.ModuleType


def _stand_in_for_runtime_library() -> None:
    # The extension is linked to libsycl.so.7; only dpjit and numba-dpex's launchers call into it.
    name = "numba_dpex.core.runtime._dpexrt_python"
    if name not in sys.modules:
        stand_in = types.ModuleType(name)
        stand_in.c_helpers = {}  # type: ignore[attr-defined]
        sys.modules[name] = stand_in


def _adapt_dpnp() -> None:
    dpnp: Any = importlib.import_module("dpnp")
    if hasattr(dpnp, "erf"):
        return
    special = importlib.import_module("dpnp.scipy.special")

    # A function, because numba-dpex sets attributes on it that the object of dpnp refuses.
    def erf(x: Any, *args: Any, **options: Any) -> Any:
        return special.erf(x, *args, **options)

    dpnp.erf = erf


def _adapt_numba_flags() -> None:
    # Since 0.60 the flags have no instance dictionary. A property that keeps the value beside the
    # declared options, and is missing until it is set, is what numba-dpex's code expects.
    flags = importlib.import_module("numba.core.compiler").Flags

    def attribute(name: str) -> property:
        def get(self: Any) -> Any:
            try:
                return self._values[name]
            except KeyError:
                raise AttributeError(name) from None

        def put(self: Any, value: Any) -> None:
            self._values[name] = value

        return property(get, put)

    for name in _FLAGS_OF_NUMBA_DPEX:
        if name not in flags.options:
            setattr(flags, name, attribute(name))


@contextlib.contextmanager
def _renamed_sycl_interface() -> Iterator[None]:
    # numba_dpex/__init__.py globs for the file under the name it had before dpctl 0.18.
    original = glob.glob

    def find(pathname: Any, *args: Any, **options: Any) -> list[Any]:
        found = original(pathname, *args, **options)
        if not found and str(pathname).endswith("DPCTLSyclInterface.so.0"):
            found = original(str(pathname).removesuffix(".0"), *args, **options)
        return found

    glob.glob = find
    try:
        yield
    finally:
        glob.glob = original


def _adapt_dispatcher() -> None:
    dispatcher = importlib.import_module("numba_dpex.kernel_api_impl.spirv.dispatcher")
    if not hasattr(dispatcher.SPIRVKernelDispatcher, "_get_dispatcher_for_current_target"):
        dispatcher.SPIRVKernelDispatcher._get_dispatcher_for_current_target = lambda self: self


def _adapt_code_generation() -> None:
    # Only the barrier's declaration says "convergent". A function that contains a barrier needs it
    # as much, or LLVM may move or duplicate the call before it is inlined (numba-dpex issues 906
    # and 1106). Clang marks every function of device code; LLVM takes it off where it can.
    context = importlib.import_module("numba_dpex.kernel_api_impl.spirv.target").SPIRVTargetContext
    declare = context.declare_function

    def declare_convergent(self: Any, module: Any, fndesc: Any) -> Any:
        function = declare(self, module, fndesc)
        function.attributes.add("convergent")
        return function

    context.declare_function = declare_convergent

    # What a builtin operation is made of is compiled with options of its own, and Numba's default
    # is to raise where floats are divided by zero, which would end the work-item unnoticed.
    make_flags = importlib.import_module("numba.core.compiler").Flags
    compile_part = context._compile_subroutine_no_cache

    def compile_like_numpy(
        self: Any, builder: Any, impl: Any, sig: Any, locals: Any = None, flags: Any = None
    ) -> Any:
        if flags is None:
            flags = make_flags()
            flags.error_model = "numpy"
        return compile_part(self, builder, impl, sig, locals or {}, flags)

    context._compile_subroutine_no_cache = compile_like_numpy

    # Each function that is compiled has all of numba-dpex's mathematics defined once more. Numba
    # looks through every definition there is, and takes the last of those for the same types, so
    # one that is the last already need not be repeated.
    insert = context.insert_func_defn

    def insert_what_is_new(self: Any, definitions: Any) -> None:
        last = vars(self).setdefault("_last_definitions", {})
        wanted = {(function, types): made for made, function, types in definitions}
        new = {key: made for key, made in wanted.items() if last.get(key) is not made}
        insert(self, [(made, function, types) for (function, types), made in new.items()])
        last.update(new)

    context.insert_func_defn = insert_what_is_new

    # Without native widths, LLVM narrows a switch to integers of, say, 63 bits, and the CPU driver
    # crashes on them (a loop over a tuple does it).
    codegen = importlib.import_module("numba_dpex.kernel_api_impl.spirv.codegen")
    layouts = codegen.SPIR_DATA_LAYOUT
    for bits, layout in layouts.items():
        if "-n8" not in layout:
            layouts[bits] = f"{layout}-n8:16:32:64"

    # A complex number or a tuple that a loop or a branch changes stays a structure unless it is
    # split before variables become values, and the CPU driver crashes on such a structure where it
    # vectorises the kernel.
    llvm = importlib.import_module("llvmlite.binding")

    def split_structures(self: Any, module: Any) -> None:
        passes = llvm.create_module_pass_manager()
        passes.add_sroa_pass()
        passes.run(module)

    codegen.SPIRVCodeLibrary._optimize_functions = split_structures

    # LLVM loads half of a built-in variable where it has proved the rest zero; drivers know whole
    # ones only. It makes floats of one signed bit, which is 0 or -1; the translator makes 0 and 1.
    generator: Any = importlib.import_module("numba_dpex.kernel_api_impl.spirv.spirv_generator")
    translate = generator.llvm_to_spirv

    def translate_mended(context: Any, module: Any, bitcode: bytes) -> Any:
        text, loads = _PARTS_OF_BUILTINS.subn(_load_whole_and_cut, str(module))
        text, signs = _FLOATS_OF_SIGNS.subn(_choose_float, text)
        if loads or signs:
            module = llvm.parse_assembly(text)
            bitcode = module.as_bitcode()
        return translate(context, module, bitcode)

    generator.llvm_to_spirv = translate_mended


def _adapt_translation() -> None:
    # dpctl forbids vfork, and to fork is to copy the table of the process's pages, which takes tens
    # of milliseconds where it has a gigabyte. posix_spawn copies nothing; Python chooses it where
    # it need not close the files in between, and no file of Python's is inherited anyway.
    generator: Any = importlib.import_module("numba_dpex.kernel_api_impl.spirv.spirv_generator")
    generator.check_output = partial(generator.check_output, close_fds=False)


#: A load of a part of a built-in variable of SPIR-V, in LLVM's text.
_PARTS_OF_BUILTINS = re.compile(
    r"(?P<name>%\S+) = load (?P<type>i\d+), (?P=type) addrspace\(1\)\* bitcast \((?:"
    r"<3 x i64> addrspace\(1\)\* (?P<first>@__spirv_BuiltIn\w+)"
    r"|i64 addrspace\(1\)\* getelementptr(?: inbounds)? \(<3 x i64>, <3 x i64> addrspace\(1\)\* "
    r"(?P<variable>@__spirv_BuiltIn\w+), i64 0, i64 (?P<dimension>\d)\)"
    r") to (?P=type) addrspace\(1\)\*\), align \d+"
)


#: The float of a truth value that LLVM has taken the negative of, in its text.
_FLOATS_OF_SIGNS = re.compile(r"= sitofp i1 (?P<bit>\S+) to (?P<type>half|float|double)")
_MINUS_ONE = {"half": "0xHBC00", "float": "-1.000000e+00", "double": "-1.000000e+00"}
_ZERO = {"half": "0xH0000", "float": "0.000000e+00", "double": "0.000000e+00"}


def _choose_float(found: re.Match[str]) -> str:
    kind = found["type"]
    return f"= select i1 {found['bit']}, {kind} {_MINUS_ONE[kind]}, {kind} {_ZERO[kind]}"


def _load_whole_and_cut(found: re.Match[str]) -> str:
    name, number = found["name"], found["type"]
    variable, dimension = found["first"] or found["variable"], found["dimension"] or "0"
    whole = name[:-1] + '.whole"' if name.endswith('"') else name + ".whole"
    return (
        f"{whole} = load i64, i64 addrspace(1)* getelementptr (<3 x i64>, <3 x i64> addrspace(1)* "
        f"{variable}, i64 0, i64 {dimension}), align 8\n"
        f"  {name} = trunc i64 {whole} to {number}"
    )


#: Operations that a multiplication and an addition are contracted from, in LLVM's text.
_CONTRACTABLE = re.compile(r"= (fmul|fadd|fsub) (?=half|float|double|<)")
#: What numba-dpex tells the translator, and that operations say themselves what is allowed of them.
_TRANSLATOR_OPTIONS = [
    "--spirv-ext=+SPV_EXT_shader_atomic_float_add",
    "--spirv-ext=+SPV_EXT_shader_atomic_float_min_max",
    "--spirv-ext=+SPV_INTEL_arbitrary_precision_integers",
    "--spirv-ext=+SPV_INTEL_variable_length_array",
    "--spirv-ext=+SPV_INTEL_fp_fast_math_mode",
]


@contextlib.contextmanager
def contraction_allowed() -> Iterator[None]:
    """The device may make one rounding of a multiplication and an addition compiled within.

    Without it, the translator gives each kernel SPIR-V's execution mode ``ContractionOff``. Intel's
    CPU driver contracts where the operations allow it, not where that mode is only missing.
    """
    generator: Any = importlib.import_module("numba_dpex.kernel_api_impl.spirv.spirv_generator")
    parse = importlib.import_module("llvmlite.binding").parse_assembly
    translate = generator.llvm_to_spirv

    def translate_flagged(context: Any, module: Any, bitcode: bytes) -> Any:
        flagged = parse(_CONTRACTABLE.sub(r"= \1 contract ", str(module)))
        context.extra_compile_options[generator.LLVM_SPIRV_ARGS] = _TRANSLATOR_OPTIONS
        return translate(context, flagged, flagged.as_bitcode())

    generator.llvm_to_spirv = translate_flagged
    try:
        yield
    finally:
        generator.llvm_to_spirv = translate


def _adapt_enumerations() -> None:
    # A kernel compiled with debug=True keeps every variable in memory, also the enumeration of
    # ``MemoryScope.DEVICE``. Nothing ever reads it back, so any number will do.
    lower_constant = importlib.import_module("numba.core.imputils").lower_constant
    literal = importlib.import_module("numba_dpex.core.types").IntEnumLiteral
    ir = importlib.import_module("llvmlite.ir")

    @lower_constant(literal)
    def enumeration(context: Any, builder: Any, type_: Any, value: Any) -> Any:
        return ir.Constant(ir.IntType(type_.bitwidth), 0)


def _replace_launchers(package: types.ModuleType) -> None:
    launcher = importlib.import_module("numba_dpex.core.kernel_launcher")
    for name in ("call_kernel", "call_kernel_async"):
        replacement = _launcher_named(name)
        setattr(package, name, replacement)
        setattr(launcher, name, replacement)
    package.dpjit = _dpjit  # type: ignore[attr-defined]
    package.prange = _refused("prange")  # type: ignore[attr-defined]


def _prepare_contexts() -> None:
    # Overloads of Python's own operations register when these modules load.
    for name in _BUILTIN_IMPLEMENTATIONS:
        importlib.import_module(f"numba.{name}")
    descriptor = importlib.import_module("numba_dpex.core.descriptor").dpex_kernel_target
    override = importlib.import_module("numba.core.target_extension").target_override
    # Refreshed outside the override, overloads register for the wrong target for good.
    with override(descriptor.target_name):
        # It adds to numba-dpex, so it cannot be imported before numba-dpex is.
        ours = importlib.import_module("dparray._compiler.device_code.groups")
        descriptor.typing_context.refresh()
        descriptor.target_context.refresh()
        ours.install(descriptor.target_context)


def _launcher_named(name: str) -> Callable[..., Any]:
    # The launchers live above this layer, so they are looked up when they are called.
    def launch(*args: Any) -> Any:
        return getattr(importlib.import_module("dparray._kernel.numba_dpex_calls"), name)(*args)

    launch.__name__ = launch.__qualname__ = name
    launch.__doc__ = f"dparray.{name}, under its name in numba-dpex."
    return launch
