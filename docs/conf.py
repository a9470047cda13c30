"""How Sphinx builds the handbook: `sphinx-build -W docs OUT`."""

from __future__ import annotations

import sys
from pathlib import Path

from dynamics_cli.version import __version__

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "dyn"
release = version = __version__
copyright = "the dyn maintainers"
extensions = [
    "myst_parser",
    "sphinx_click",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "mathml",
    "reference",
    "papers",
    "front",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_ext", "figures", "**/_*.md"]
nitpicky = False
highlight_language = "bash"
autodoc_default_options = {"exclude-members": "model_config"}

myst_enable_extensions = [
    "dollarmath",
    "amsmath",
    "colon_fence",
    "deflist",
    "attrs_inline",
    "substitution",
]
myst_heading_anchors = 3
myst_links_external_new_tab = False

html_theme = "furo"
html_title = "dyn"
html_static_path = ["_static", "_ext/static"]
html_css_files = ["custom.css"]
html_js_files = ["custom.js"]
html_favicon = "_static/favicon.svg"
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = (
    False  # a summary is fetched, which a browser refuses for files on the disk
)
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {"color-brand-content": "#1d5fa8"},
}
