"""Configure the documentation, which ``make docs`` builds; the code cells of its pages run."""

from __future__ import annotations

import functools
import os
import sys
import tempfile
from pathlib import Path

from jupyter_cache.executors import utils as executors

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_extensions"), str(HERE.parent)]
# Pages run in separate Jupyter kernels, which import the package of this clone and show no progress.
os.environ["PYTHONPATH"] = str(HERE.parent)
os.environ["TQDM_DISABLE"] = "1"
os.environ["DPARRAY_NOTICES"] = "0"
# A separate profile keeps out the user's settings and warnings about kernel connections.
ipython = tempfile.TemporaryDirectory()
(Path(ipython.name) / "profile_default").mkdir()
configuration = Path(ipython.name) / "profile_default" / "ipython_kernel_config.py"
configuration.write_text("c.IPKernelApp.log_level = 40\n")
os.environ["IPYTHONDIR"] = ipython.name

import dparray  # noqa: E402  the package of this clone, even if another one is installed

# A busy machine can need more than the default of 60 s to start the Jupyter kernel of a page, and
# neither myst-nb nor jupyter-cache has an option for it.
executors.executenb = functools.partial(executors.executenb, startup_timeout=600)

project = "dparray"
author = "the authors of dparray"
copyright = author
release = version = dparray.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "chapters",
]
exclude_patterns = ["_extensions", "_include"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb", ".rst": "restructuredtext"}
root_doc = "index"

# Pages run during the build, and an error fails it. The notebooks contain their outputs:
# `make notebooks` and the tests run those.
nb_execution_mode = "cache"
nb_execution_excludepatterns = ["*.ipynb"]
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_show_tb = True
nb_merge_streams = True
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist", "substitution"]
myst_substitutions = {"version": release}
myst_heading_anchors = 3
myst_links_external_new_tab = False

autodoc_typehints = "signature"
autodoc_member_order = "alphabetical"
autosummary_generate = False
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
# Several classes have an attribute such as `shape`, so a reference to it is ambiguous.
suppress_warnings = ["ref.python"]
add_module_names = False
toc_object_entries_show_parents = "hide"
python_use_unqualified_type_names = True
copybutton_exclude = ".linenos, .gp, .go"

html_theme = "pydata_sphinx_theme"
html_title = "dparray"
html_static_path = ["_static"]
html_sidebars = {"gallery": []}
html_favicon = "_static/favicon.svg"
html_css_files = ["site.css"]
html_search_scorer = str(HERE / "_static" / "scorer.js")
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"image_light": "_static/logo.svg", "image_dark": "_static/logo-dark.svg"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "show_toc_level": 2,
}


def is_left_out(app, what, name, obj, skip, options):
    """Leave out attributes that exist only to name their replacement."""
    return (getattr(obj, "__doc__", None) or "").startswith("Not there: ") or None


def setup(app):
    app.connect("autodoc-skip-member", is_left_out)
