"""What the paper predicts: closed forms and ODEs in float64, one concept a file."""
