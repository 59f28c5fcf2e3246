# Every target builds .venv from requirements.lock first, if it is missing or the lock has changed.
# Arguments for the command behind a target go into ARGS: make test ARGS="-k placement"
# PART=3/8 takes an eighth of the tests of as-gpu, host-tests, cuda-tests and users-tests.

SHELL := /bin/bash
.DEFAULT_GOAL := help
unexport PYTHONHOME PYTHONPATH

python := .venv/bin/python
ARGS ?=
part = $(PART:%=--part %)

.PHONY: help venv demo tiny test second fastpath kernels stress suites gpu-driver as-gpu host-tests cuda-tests users-tests check jupyter notebooks docs bench lock wheel-tools dist aarch64 clean distclean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 20

venv: ## build .venv
	@bash .ci/build-venv

demo: venv ## process a photograph, check it against NumPy, and compile what most programs need
	@$(python) -m dparray demo $(ARGS)
	@$(python) -m dparray warmup

tiny: venv ## ten operations end to end, in seconds
	@$(python) -m pytest -q tests/test_tiny.py $(ARGS)

test: venv ## run a sample of the tests on all cores; ARGS=--all runs every case, --changed those of changed files
	@$(python) -m pytest -n auto --dist loadfile --max-worker-restart=2 --worker-memory 2.2 $(ARGS)

fastpath: venv ## compile the fast path of small arrays again (make venv does it, with a C compiler)
	@$(python) -m dparray._array.build_fastpath

kernels: venv ## compile the kernels that a wheel brings, so that a program's first calls do not
	@$(python) -m dparray.cli.store $(ARGS)

stress: venv ## random programs against NumPy; ARGS="--minutes 60 --seed 1"
	@PYTHONPATH=. $(python) tests/stress/stress.py $(ARGS)

suites: venv ## other projects' test suites on dparray; ARGS="dpnp --only test_sum --sample 10"
	@bash .ci/build-suites
	@OCL_ICD_FILENAMES="$${OCL_ICD_FILENAMES:-$$(readlink -f .venv)/lib/libintelocl.so}" \
	  build/suites/venv/bin/python tests/suites/run.py $(ARGS)

gpu-driver: venv ## build and call on Intel's GPU driver, without a GPU; ARGS="build --products tgllp"
	@bash .ci/gpu-driver || { test $$? = 3 && echo "make gpu-driver: skipped"; } && \
	  { [[ ! -f build/gpu-driver/complete ]] || $(python) tests/gpu_driver/run.py $(ARGS); }

as-gpu: venv ## run tests with the CPU device playing a GPU; PART=1/8
	@PYTHONPATH=tests $(python) -m pytest -n auto --dist loadfile --max-worker-restart=2 -p as_gpu $(part) $(ARGS) \
	  tests/evaluate tests/codegen tests/algorithms tests/functions tests/kernel tests/tilelang tests/jit tests/onnx

on_host = $(python) -m pytest -n auto --dist loadfile --max-worker-restart=2 -p tests.host.on_host $(ARGS) $(part)
of_host := tests/test_tiny.py tests/evaluate tests/codegen tests/algorithms tests/functions tests/kernel tests/tilelang tests/jit tests/onnx tests/gradients
host-tests: venv ## run tests on the CPU device without SYCL; PART=1/8
	@$(on_host) $(of_host)

on_cuda = $(python) -m pytest -n auto --dist loadfile --max-worker-restart=2 -p tests.cuda.on_cuda $(ARGS) $(part)
of_cuda := tests/test_tiny.py tests/kernel tests/evaluate tests/algorithms tests/memory tests/jit tests/functions tests/onnx tests/tilelang \
  $(addprefix tests/gradients/test_,$(addsuffix .py,conventions loops replay several_devices slices statements table tile transforms))
cuda-tests: venv ## run tests with a stand-in for NVIDIA's driver, which emulates kernels; PART=1/8
	@$(python) -m pytest -n auto --dist loadfile --max-worker-restart=2 -p tests.cuda.standin $(ARGS) tests/cuda/driver; \
	  status=$$?; \
	  $(on_cuda) $(of_cuda) && exit $$status

# All that needs no option: tests that count kernels set the tests' own options.
users-tests: venv ## run tests with a user's defaults and an empty cache on three devices; PART=1/16
	@status=0; \
	$(python) -m pytest -n auto --dist loadfile --max-worker-restart=2 --users-defaults $(ARGS) $(part) || status=$$?; \
	$(on_host) --users-defaults $(of_host) || status=$$?; \
	$(on_cuda) --users-defaults $(of_cuda) || status=$$?; \
	exit $$status

second: venv ## run the compiler's tests on Python 3.13, with the oldest supported llvmlite
	@bash .ci/second-python $(ARGS)

check: venv ## ruff, mypy and the static tests: layers, docstrings, names, signatures
	@$(python) -m ruff check .
	@$(python) -m mypy
	@$(python) -m pytest -q -m "static and not slow" tests/package tests/functions/test_placement_everywhere.py

jupyter: venv ## open the notebooks in JupyterLab
	@$(python) -m jupyter lab --notebook-dir notebooks $(ARGS)

# The notebook about models reads one out of a package that is not locked.
notebooks: venv ## execute the notebooks in place
	@TQDM_DISABLE=1 DPARRAY_NOTICES=0 $(python) -m nbconvert --to notebook --execute --inplace --ExecutePreprocessor.record_timing=False $(ARGS) \
	  $(filter-out $(if $(shell $(python) -c "import importlib.util as u, sys; sys.exit(u.find_spec('magika') is None and 'missing')" 2>&1),notebooks/09-models.ipynb),$(wildcard notebooks/*.ipynb))

docs: venv ## build the documentation into out/docs
	@rm -rf out/docs
	@$(python) -m sphinx -q -W --keep-going -b html -d out/doctrees notebooks out/docs $(ARGS)
	@echo "out/docs/index.html"

bench: venv ## time dparray against NumPy, dpnp and others; ARGS="launch overhead"
	@$(python) -m tests.benchmarks $(ARGS)

# Keeps the versions that are locked already; ARGS=--upgrade takes the newest.
# All extras except cuda, whose libraries only a GPU can use.
lock: extras := sycl pictures notebook test bench dask onnx keras docs conformance dev
lock: ## bring requirements.lock in line with pyproject.toml
	@uv=$$(command -v uv || echo .venv/bin/uv); \
	[[ -x $$uv ]] || { bash .ci/build-venv && uv=.venv/bin/uv; }; \
	"$$uv" pip compile pyproject.toml $(extras:%=--extra %) --universal --python-version 3.10 \
	  --generate-hashes --only-binary :all: --emit-build-options --no-emit-index-url \
	  --no-annotate --custom-compile-command "make lock" --quiet \
	  --output-file requirements.lock $(ARGS)

# In an environment of its own: .venv holds only what is locked for work. The file lists what is installed.
wheel_tools := build "hatchling>=1.27" "numpy>=2.0" ziglang abi3audit twine check-wheel-contents py-rattler-build cyclonedx-bom
wheel-tools:
	@[[ -f build/dist/complete && $$(<build/dist/complete) == '$(wheel_tools)' ]] || { \
	  rm -rf build/dist && mkdir -p build && python3 -m venv build/dist && \
	  build/dist/bin/pip --quiet --disable-pip-version-check install $(wheel_tools) && \
	  echo '$(wheel_tools)' >build/dist/complete; }

# The wheels that can run here are tried on every Python of this machine, or on those that ARGS names.
dist: venv wheel-tools ## build sdist and wheels for all systems twice, check and try them
	@$(python) -m dparray.cli.store
	@build/dist/bin/python .ci/build_wheels.py
	@build/dist/bin/python .ci/conda_recipe.py dist/*.tar.gz build/recipe.yaml
	@bash .ci/sbom dist/*-py3-none-any.whl build/dparray.cdx.json
	@bash .ci/try-wheel dist/*manylinux*_$$(uname -m).whl $(ARGS)
	@bash .ci/try-wheel dist/*-py3-none-any.whl 3.11

aarch64: wheel-tools ## run a sample of the tests on an emulated ARM processor; ARGS="tests/kernel"
	@bash .ci/aarch64 $(ARGS) || { test $$? = 3 && echo "make aarch64: skipped"; }

clean: ## remove build products and tool caches
	@rm -rf build dist out *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find dparray kernels tests -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## remove .venv too
	@rm -rf "$$(readlink -m .venv)" .venv .venv.lock
