"""Fuzzing: whatever is read is taken or answered, never a traceback, never minutes, never gigabytes.

Each module of inputs (`rooms.ROOMS`) makes case `i` of a seed and runs it; `cage` does so in a process with limits.
`python -m tests.fuzz.run configs 100000 --seed 0` runs as many as you like and counts what came out.
"""
