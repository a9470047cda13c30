"""One HTML file that shows runs, sweeps, figures and papers: offline, for years, without a server."""

from dynamics_cli.pages.document import Page
from dynamics_cli.pages.make import page, pages_folder

__all__ = ["Page", "page", "pages_folder"]
