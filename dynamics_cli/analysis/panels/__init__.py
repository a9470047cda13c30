"""The panels of a run, one family a file; `registry` names them."""
