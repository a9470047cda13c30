"""One HTML file that shows runs, sweeps, figures and papers: offline, for years, without a server.

`api.page` and `dyn page` call it; charts and scenes come from `analysis`, and `assets/*.js` draws
them. Begin with `make.py`, then `drawn.py`.
"""

from dynamics_cli.pages.document import Page
from dynamics_cli.pages.make import page, pages_folder

__all__ = ["Page", "page", "pages_folder"]
