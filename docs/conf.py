"""Sphinx: the pages in docs/, and the reference from the docstrings.

Why these: Sphinx reads docstrings without a copy of them in the pages and checks every reference; furo is its
best kept theme (search, dark mode, phones, no tracking); myst-parser lets the pages stay Markdown, which
repositories show too. MkDocs with mkdocstrings was the other candidate: its theme entered maintenance, and it
checks fewer references.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parent))

import dashboard

import tokenform

project = "tokenform"
author = "The tokenform developers"
copyright = author
release = version = tokenform.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "notebooks"]
root_doc = "index"
nitpicky = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["myst.xref_missing"]  # links to files of the repository that are not pages

html_theme = "furo"
html_title = f"tokenform {version}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_theme_options = {"navigation_with_keys": True}
highlight_language = "none"

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_default_options = {"members": True, "show-inheritance": False}
napoleon_google_docstring = True
napoleon_use_rtype = False
napoleon_custom_sections = [("Raises, when called", "Raises")]


def setup(app: Any) -> None:
    """Puts the history into its page, and shows a function with overloads once, by its own signature."""
    from sphinx.pycode import ModuleAnalyzer

    def with_history(app: Any, name: str, source: list[str]) -> None:
        if name == "dashboard":
            source[0] = dashboard.page(source[0])

    app.connect("source-read", with_history)
    app.connect("env-get-outdated", lambda *_: ["dashboard"])  # a commit changes it, not its file

    analyze = ModuleAnalyzer.analyze

    def without_overloads(self: Any) -> None:
        analyze(self)
        self.overloads = {}

    ModuleAnalyzer.analyze = without_overloads
