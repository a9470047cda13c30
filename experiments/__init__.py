"""The papers: one package each, one small module per figure."""
