"""Saxe, McClelland, Ganguli (2014): exact solutions of deep linear networks; with silent
alignment (Atanasov 2022).
"""
