"""Record the corpus: ``python -m mara.curves.record --all`` or ``--ids ID ...``.

Batches are recorded in worker processes of one thread each. Every finished batch becomes a shard in a
folder, so that a killed run goes on where it stopped; the family's Parquet file appears when all of its
shards are there. Shards do not know of changes to a recorder's code: remove their folder after such a change.
With ``--ids`` the batches of those curves are recorded again and compared bit by bit with the corpus.

Shapes: B recipes of a batch, N = 200 points.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
import zlib
from collections.abc import Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from pathlib import Path
from types import ModuleType

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from mara.command_line import LineParser
from mara.curves.corpus import (
    DATA_DIRECTORY,
    FAMILIES,
    POINTS,
    Corpus,
    concatenate,
    load_corpus,
    read_curves,
    write_curves,
)
from mara.curves.recipes import Recipe, Recorded, family_batches, find_batches, fingerprint
from mara.errors import InputError, exit_on_input_error

DIVERGENCE_FACTOR = 1e6
"""A loss this many times above the loss before training counts as non-finite."""
SMALLEST_LOSS = 1e-6
"""Losses below are recorded as this, so that logarithms exist."""
SIGNIFICANT_BITS = 13
"""Losses are rounded to so many binary digits (relative error up to 1.2e-4) to keep the file small."""
SHARDS = Path("build/curves")
MOST_WORKERS = 64
"""Worker processes at most, or as many as there are processors; more only cost memory."""

Batch = tuple[ModuleType, list[Recipe]]


def as_corpus(recipes: Sequence[Recipe], recorded: Recorded) -> Corpus:
    """Raw curves as they are stored: divergence marked, losses floored and rounded.

    Raises:
        ValueError: if a loss before training is not finite or a learning rate is not.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        validation = np.asarray(recorded.validation_loss, dtype=np.float64)
        train = np.asarray(recorded.train_loss, dtype=np.float64)
        finite = np.isfinite(validation) & np.isfinite(train)
        finite &= (validation <= DIVERGENCE_FACTOR * validation[:, :1]) & (
            train <= DIVERGENCE_FACTOR * train[:, :1]
        )
    if not finite[:, 0].all() or not np.isfinite(recorded.schedule).all():
        raise ValueError(f"batch {recipes[0].batch}: a curve has no finite start or learning rate")
    diverged_at = np.where(finite.all(axis=1), POINTS, finite.argmin(axis=1)).astype(np.int32)
    alive = np.arange(POINTS) < diverged_at[:, None]

    def stored(loss: NDArray) -> NDArray[np.float32]:
        return round_bits(np.where(alive, np.maximum(loss, SMALLEST_LOSS), np.nan))

    def text(name: str) -> NDArray[np.str_]:
        return np.array([getattr(recipe, name) for recipe in recipes], dtype=np.str_)

    return Corpus(
        id=text("id"),
        family=text("family"),
        dataset=text("dataset"),
        group=text("group"),
        split=text("split"),
        seed=np.array([recipe.seed for recipe in recipes], dtype=np.int64),
        config=[recipe.config for recipe in recipes],
        loss=stored(validation),
        train_loss=stored(train),
        schedule=np.asarray(recorded.schedule, dtype=np.float32),
        diverged_at=diverged_at,
    )


def round_bits(values: NDArray) -> NDArray[np.float32]:
    """Round to ``SIGNIFICANT_BITS`` binary digits; NaN stays NaN."""
    mantissa, exponent = np.frexp(values)
    scale = 2.0**SIGNIFICANT_BITS
    return np.ldexp(np.rint(mantissa * scale) / scale, exponent).astype(np.float32)


def record_batch(batch: Batch) -> Corpus:
    """Record one whole batch in this process."""
    module, recipes = batch
    return as_corpus(recipes, module.record(recipes))


def record_ids(ids: Sequence[str], jobs: int = 1) -> Corpus:
    """Record the batches that hold the ids again and return those curves, in the order given.

    Raises:
        InputError: for an id that no recipe has.
    """
    batches = find_batches(ids)
    with closing(_run(batches, jobs)) as parts:
        recorded = concatenate([part for _, part in tqdm(parts, total=len(batches), unit="batch")])
    rows = {name: row for row, name in enumerate(recorded.id)}
    return recorded.select(np.array([rows[name] for name in ids]))


def record_family(family: str, output: Path, shards: Path, jobs: int) -> Path:
    """Record all curves of a family into ``output/<family>.parquet``, going on from finished shards."""
    batches = family_batches(family)
    folder = shards / family
    folder.mkdir(parents=True, exist_ok=True)
    # A scrambled order lets whatever is finished first be a fair sample of the family.
    missing = [batch for batch in batches if not _shard(folder, batch).exists()]
    missing.sort(key=lambda batch: zlib.crc32(batch[1][0].batch.encode()))
    curves = sum(len(recipes) for _, recipes in batches)
    done = curves - sum(len(recipes) for _, recipes in missing)
    with (
        tqdm(total=curves, initial=done, desc=family, unit="curve", smoothing=0.05) as progress,
        closing(_run(missing, jobs)) as parts,
    ):
        for batch, part in parts:
            write_curves(part, _shard(folder, batch))
            progress.update(len(part))
    path = output / f"{family}.parquet"
    write_curves(concatenate([read_curves(_shard(folder, batch)) for batch in batches]), path)
    shutil.rmtree(folder)
    return path


def _shard(folder: Path, batch: Batch) -> Path:
    recipes = batch[1]
    return folder / f"{recipes[0].batch.replace('/', '__')}-{fingerprint(recipes)}.parquet"


def _run(batches: Sequence[Batch], jobs: int) -> Generator[tuple[Batch, Corpus], None, None]:
    """Record batches in ``jobs`` fresh processes of one thread each, yielding them as they finish.

    Close it to end the processes early.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_start_worker) as pool:
        futures = {
            pool.submit(_record_named, module.__name__, recipes): (module, recipes)
            for module, recipes in batches
        }
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            # What workers have begun would be thrown away in any case, and may take minutes.
            for worker in multiprocessing.active_children():
                worker.terminate()
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _start_worker() -> None:
    """One thread, and no life after a killed parent, which would leave the worker waiting for ever.

    An interrupt from the keyboard reaches all processes of a terminal; the parent is who acts on it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _record_named(module: str, recipes: list[Recipe]) -> Corpus:
    """What a worker does; modules do not pickle, their names do."""
    return record_batch((importlib.import_module(module), recipes))


def compare(recorded: Corpus, stored: Corpus) -> list[str]:
    """Ids of recorded curves whose numbers are not exactly those of the stored corpus."""
    rows = {name: row for row, name in enumerate(stored.id)}
    different = []
    for row, name in enumerate(recorded.id):
        twin = rows.get(name)
        same = twin is not None and all(
            np.array_equal(getattr(recorded, column)[row], getattr(stored, column)[twin], equal_nan=True)
            for column in ("loss", "train_loss", "schedule")
        )
        if not same:
            different.append(str(name))
    return different


def main(words: Sequence[str] | None = None, prog: str = "python -m mara.curves.record") -> None:
    """The command line: ``words``, by default those of the process, for the program ``prog``."""
    parser = LineParser(
        prog=prog,
        description="Record the training curves of the corpus, or some again to compare them bit by bit.",
        epilog=f"example: {prog} --ids digits/mlp-1x200-relu/00-0",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--all", action="store_true", help="record every curve")
    what.add_argument("--family", choices=FAMILIES, help="record every curve of one family")
    what.add_argument(
        "--ids", nargs="+", metavar="ID", help="record these again and compare them with the corpus"
    )
    parser.add_argument("--output", type=Path, default=DATA_DIRECTORY, help="folder of the Parquet files")
    parser.add_argument("--shards", type=Path, default=SHARDS, help="folder of the finished batches")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    arguments = parser.parse_args(words)
    most = max(MOST_WORKERS, os.cpu_count() or 1)
    if not 1 <= arguments.jobs <= most:
        raise InputError(f"--jobs {arguments.jobs}: expected 1 to {most} workers")
    try:
        if arguments.ids:
            _record_again(arguments.ids, arguments.output, arguments.jobs)
            return
        for option in ("output", "shards"):
            _check_folder(f"--{option}", getattr(arguments, option))
        for family in FAMILIES if arguments.all else [arguments.family]:
            path = record_family(family, arguments.output, arguments.shards, arguments.jobs)
            print(f"{path}: {path.stat().st_size / 1e6:.2f} MB")
    except BrokenProcessPool:
        raise InputError(
            f"--jobs {arguments.jobs}: a worker was killed, for want of memory perhaps; the same command goes on "
            "where this one stopped, and fewer workers need less"
        ) from None


def _record_again(ids: Sequence[str], output: Path, jobs: int) -> None:
    """Record curves again and say how many are the stored ones, bit by bit."""
    stored = load_corpus(output)
    different = compare(record_ids(ids, jobs), stored)
    print(f"{len(ids) - len(different)} of {len(ids)} curves reproduced bit by bit")
    if different:
        raise InputError(f"{output}: not reproduced: {', '.join(different)}")


def _check_folder(option: str, folder: Path) -> None:
    """Refuse a folder in which nothing can be written, before hours are spent on what is to lie there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(
            f"{option} {folder}: cannot be written ({error.strerror}); expected a folder of your own"
        ) from None


if __name__ == "__main__":
    exit_on_input_error(main)
