"""How a network's arithmetic is done: exact float32, unless the user trades digits for time.

Whatever differs from that gives other rows, so it is a part of the descriptor's digest, and tables say it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from raybench.errors import ConfigError

DTYPES = ("float32", "float16", "bfloat16")
COMPILED = "sscd:URI, hf:, timm: or torchvision:"  # what torch.compile may make the kernels of


@dataclass(frozen=True)
class Precision:
    """`dtype` of weights and activations, TF32 in products of float32, and whether torch.compile makes the kernels."""

    dtype: str = "float32"
    tf32: bool = False
    compile: bool = False

    @property
    def needs_gpu(self) -> str:
        """The option that does nothing, or worse than nothing, on CPUs; empty if there is none."""
        return f"--dtype {self.dtype}" if self.dtype != "float32" else "--tf32" if self.tf32 else ""

    @property
    def options(self) -> str:
        """What was asked for, as options; empty for exact float32."""
        asked = [self.needs_gpu, "--compile" if self.compile else ""]
        return ", ".join(one for one in asked if one)

    @property
    def words(self) -> str:
        """What tables say of it; empty for exact float32.

        >>> Precision("bfloat16", compile=True).words, Precision(tf32=True).words, Precision().words
        ('bfloat16, torch.compile', 'TF32', '')
        """
        kinds = [self.dtype if self.dtype != "float32" else "", "TF32" if self.tf32 else ""]
        return ", ".join(kind for kind in [*kinds, "torch.compile" if self.compile else ""] if kind)

    @property
    def arguments(self) -> dict[str, Any]:
        """Those of a model's constructor; what is off is left out."""
        flags = {"tf32": self.tf32, "compile": self.compile}
        return {"dtype": self.dtype} | {key: True for key, is_on in flags.items() if is_on}

    def check(self) -> None:
        """Refuse what contradicts itself."""
        if self.dtype not in DTYPES:
            raise ConfigError(f"--dtype {self.dtype}: unknown; expected one of {', '.join(DTYPES)}")
        if self.tf32 and self.dtype != "float32":
            raise ConfigError(f"--tf32: is a way to multiply float32; leave it out with --dtype {self.dtype}")

    def check_device(self, device: str) -> None:
        """Refuse on CPUs (`device` is `cpu`) what only GPUs do."""
        if device == "cpu" and self.needs_gpu:
            raise ConfigError(f"{self.needs_gpu}: needs a GPU; leave it out on CPUs")


EXACT = Precision()
