"""How the documentation is built: ``make docs``. The pages run as they are written."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_extensions"), str(HERE.parent)]
# Pages run in kernels of their own, which find the package of this clone, and tell of no progress.
os.environ["PYTHONPATH"] = str(HERE.parent)
os.environ["TQDM_DISABLE"] = "1"
os.environ["DPARRAY_NOTICES"] = "0"
# They have a profile of their own: not the user's, and none that warns of how kernels are reached.
ipython = tempfile.TemporaryDirectory()
(Path(ipython.name) / "profile_default").mkdir()
configuration = Path(ipython.name) / "profile_default" / "ipython_kernel_config.py"
configuration.write_text("c.IPKernelApp.log_level = 40\n")
os.environ["IPYTHONDIR"] = ipython.name

import dparray  # noqa: E402  the package of this clone, whatever is installed

project = "dparray"
author = "the authors of dparray"
copyright = author
release = version = dparray.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "chapters",
]
exclude_patterns = ["_extensions"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
root_doc = "index"

# Pages run when they are built, and an error fails the build. The notebooks bring their outputs:
# `make notebooks` and the tests run those.
nb_execution_mode = "cache"
nb_execution_excludepatterns = ["*.ipynb"]
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_show_tb = True
nb_merge_streams = True
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3
myst_links_external_new_tab = False

autodoc_typehints = "none"
autodoc_member_order = "alphabetical"
autosummary_generate = False
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
# Attributes of one name in several classes, as `shape`, which a list of attributes refers to.
suppress_warnings = ["ref.python"]
add_module_names = False
toc_object_entries_show_parents = "hide"
python_use_unqualified_type_names = True
copybutton_exclude = ".linenos, .gp, .go"

html_theme = "pydata_sphinx_theme"
html_title = "dparray"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
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
    """Attributes that only say what to write in their place are no part of the reference."""
    return (getattr(obj, "__doc__", None) or "").startswith("Not there: ") or None


def setup(app):
    app.connect("autodoc-skip-member", is_left_out)
