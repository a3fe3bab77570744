"""Log-progress: how far a task has come from its first loss to its target, as a table.

Legend: J templates, C curves of the corpus, N points of a curve.
"""

from __future__ import annotations

import numpy as np

from mara.curves.corpus import Corpus
from mara.curves.smoothing import smooth
from mara.workload.tasks import TaskPool


def log_progress(pool: TaskPool, corpus: Corpus) -> np.ndarray:
    """Return log(l(0) / l(u)) / log(l(0) / target), clipped to [0, 1], for all templates and units u.

    The result is (J, N) float32.
    l(u) is the best smoothed loss in the first u units, so progress never falls, and it is 1 exactly
    where the target has been reached. A point past the divergence of a curve counts as no better than those
    before it. Where the target is no improvement on the first loss, progress is 1 throughout.
    """
    smoothed = smooth(corpus.loss)[pool.rows_in(corpus)].astype(np.float64)
    best = np.minimum.accumulate(np.where(np.isfinite(smoothed), smoothed, np.inf), axis=1)
    target = pool.target.astype(np.float64)[:, None]
    way = np.log(best[:, :1] / target)
    progress = np.where(way > 0, np.log(best[:, :1] / best) / np.where(way > 0, way, 1.0), 1.0)
    reached = best <= target
    below = np.nextafter(np.float32(1), np.float32(0))
    return np.where(reached, np.float32(1), np.clip(progress, 0.0, below)).astype(np.float32)
