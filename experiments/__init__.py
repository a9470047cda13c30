"""The papers: a folder each, with a module per figure, kinds and theory that only it needs, and
NOTES.md.

`reproduction` imports the module of a figure that is asked for; `index.py` lists papers and figures
without any import. Begin with `liu2023/student.py`, which `docs/explanation/one-figure.md` walks
through.
"""
