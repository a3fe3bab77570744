"""Which modules record which family; apart from what they import, as the workflow asks too."""

RECORDERS = {
    "supervised": ("mara.curves.mlp", "mara.curves.boosting", "mara.curves.text"),
    "vision": ("mara.curves.vision",),
    "rl": ("mara.curves.reinforcement.recorder",),
}
"""The recorder modules of each family's file, in row order; see :mod:`mara.curves.recipes`."""
