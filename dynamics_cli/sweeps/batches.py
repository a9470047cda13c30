"""Which jobs of a sweep are trained together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dynamics_cli.datasets import Dataset, build_dataset
from dynamics_cli.errors import DynError
from dynamics_cli.sweeps.jobs import Job
from dynamics_cli.training.problem import Problem, build_problem
from dynamics_cli.training.replicas import batch_key

BATCH_BYTES = 256 * 2**20
"""Weights, gradients and recorded numbers of one batch stay below about this size."""
BATCH_JOBS = 4096
"""Most jobs in a batch: what a kill between two checkpoints can cost, and the rows of one table of settings."""


@dataclass(frozen=True)
class Work:
    """What a sweep has to do: batches of jobs that share a shape, jobs that go alone, jobs that cannot start."""

    batches: list[list[tuple[Job, Problem]]]
    singles: list[Job]
    refused: list[tuple[Job, str]]


def divide(jobs: Sequence[Job]) -> Work:
    """Build the problems of all jobs and sort them into batches; data sets that are the same are built once."""
    groups: dict[str, list[tuple[Job, Problem]]] = {}
    singles: list[Job] = []
    refused: list[tuple[Job, str]] = []
    datasets: dict[str, Dataset] = {}
    for job in jobs:
        try:
            problem = build_problem(job.config, dataset=_dataset(job, datasets))
        except DynError as error:
            refused.append((job, str(error)))
            continue
        key = batch_key(problem)
        if key is None:
            singles.append(job)
        else:
            groups.setdefault(key, []).append((job, problem))
    batches: list[list[tuple[Job, Problem]]] = []
    for group in groups.values():
        if len(group) == 1:
            singles.append(group[0][0])
            continue
        size = _batch_size(group[0][1])
        batches += [group[k : k + size] for k in range(0, len(group), size)]
    return Work(batches, singles, refused)


def _dataset(job: Job, known: dict[str, Dataset]) -> Dataset:
    section = job.config.dataset
    drawn = section.kind not in ("points", "mnist_pair", "mnist")  # what may depend on the seed
    key = f"{section.model_dump_json()} {job.config.seed if drawn else None}"
    if key not in known:
        known[key] = build_dataset(section, job.config.seed)
    return known[key]


def _batch_size(problem: Problem) -> int:
    bytes_each = 8 * problem.dtype.itemsize * problem.parameter_count + 1024
    return max(1, min(BATCH_JOBS, BATCH_BYTES // bytes_each))
