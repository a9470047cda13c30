"""Fuzzing: whatever is read is taken or answered, never a traceback, never minutes, never gigabytes.

Each reader has a room (`rooms.ROOMS`): cases that are the same each time, and a strategy of hypothesis that draws more.
`python -m tests.fuzz.run configs 100000 --seed 1` draws as many as you like and counts the answers.
"""
