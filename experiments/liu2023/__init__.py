"""Liu, Michaud, Tegmark (2023): grokking beyond algorithmic data, by large initial weights."""
