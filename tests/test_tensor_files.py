"""Files of tensors: the same bytes under any name, whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from mara.tensor_files import save_tensors


def test_bytes_depend_on_the_content_alone(tmp_path: Path) -> None:
    content = {"weights": torch.arange(6.0).reshape(2, 3), "step": 7}
    for name in ("policy.pt", "checkpoint"):
        save_tensors(tmp_path / name, content)
    assert (tmp_path / "policy.pt").read_bytes() == (tmp_path / "checkpoint").read_bytes()
    loaded = torch.load(tmp_path / "policy.pt", weights_only=True)
    assert loaded["step"] == 7
    assert torch.equal(loaded["weights"], content["weights"])


def test_what_cannot_be_written_leaves_the_earlier_file(tmp_path: Path) -> None:
    save_tensors(tmp_path / "policy.pt", {"step": 1})
    with pytest.raises(Exception, match="pickle"):
        save_tensors(tmp_path / "policy.pt", {"step": lambda: None})
    assert torch.load(tmp_path / "policy.pt", weights_only=True) == {"step": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["policy.pt"]
