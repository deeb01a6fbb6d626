"""An ONNX file as an image descriptor, by onnxruntime: float32 (n, 3, h, w) in, one row per picture out.

The batch may be fixed in the file (often 1): then that many pictures go in at a time. A fixed height and width must be
what the preprocessing makes of every picture.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.descriptors.image_networks import ImageNetwork
from raybench.descriptors.model_errors import blamed_on_model
from raybench.descriptors.precision import Precision
from raybench.errors import ConfigError, DataError, blamed_on_file, reason_of
from raybench.formats.images import Preprocess

# An entry `location` of a tensor that is stored elsewhere, as protobuf writes it: field 1, the key; field 2, a text.
LOCATION = re.compile(rb"\x0a\x08location\x12")


class OnnxImages(ImageNetwork):
    """The network in `path`, run by onnxruntime."""

    def __init__(
        self, path: str, size: int, mode: str, dtype: str = "float32", tf32: bool = False, compile: bool = False
    ) -> None:
        asked = Precision(dtype, tf32, compile).options
        if asked:
            raise ConfigError(f"{asked}: an ONNX file has an arithmetic of its own; leave it out")
        super().__init__(path, Preprocess(size, mode))
        self.preprocess: Preprocess

    def describe(self, batch: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Rows (n, dim) of pictures of one size, (n, h, w, 3)."""
        if self._model is None:
            self._model = self.load(self._device)
        values = self.preprocess.normalised(batch)
        at_once = self._model.get_inputs()[0].shape[0]
        if not isinstance(at_once, int):
            return self._rows(values)
        parts = []
        for start in range(0, len(values), at_once):
            some = values[start : start + at_once]
            filled = np.concatenate([some, np.zeros((at_once - len(some), *some.shape[1:]), np.float32)])
            parts.append(self._rows(filled)[: len(some)])
        return np.concatenate(parts)

    def _rows(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        given = self._model.get_inputs()[0]
        with blamed_on_model(self._path, values.shape):
            rows = np.asarray(self._model.run([self._model.get_outputs()[0].name], {given.name: values})[0])
        if rows.ndim != 2 or len(rows) != len(values):
            raise DataError(
                f"{self._path}: expected ({len(values)}, dim) from a batch of shape {values.shape}, found "
                f"{rows.shape}; flatten the model's output before exporting it"
            )
        return rows.astype(np.float32)

    @staticmethod
    def files_beside(model: memoryview) -> list[str]:
        """Files that hold tensors of the model, by their paths from its folder (ONNX calls that external data)."""
        return sorted({_text_at(model, found.end()) for found in LOCATION.finditer(model)})

    def load(self, device: str) -> Any:
        """A session of onnxruntime with the file, whose input was checked."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # the engine runs one process per core
        options.log_severity_level = 3
        there = onnxruntime.get_available_providers()
        wanted = ["CUDAExecutionProvider"] if device != "cpu" else []
        # TF32 and the search for the fastest kernel are off, as for torch.
        exact = {"CUDAExecutionProvider": {"use_tf32": 0, "cudnn_conv_algo_search": "DEFAULT"}}
        providers = [(name, exact[name]) for name in wanted if name in there]
        if wanted and not providers:
            raise ConfigError(
                f"onnx:{self._path}: onnxruntime sees no CUDA; install onnxruntime-gpu or give --device cpu"
            )
        try:
            session = onnxruntime.InferenceSession(
                self._path, sess_options=options, providers=[*providers, "CPUExecutionProvider"]
            )
        except Exception as cause:  # its own exceptions have no common type but this one
            raise DataError(
                f"{self._path}: can't be loaded as ONNX ({reason_of(cause)}); export the model again"
            ) from cause
        with blamed_on_file(f"{self._path}: its inputs can't be read", "export the model again"):
            self._check_input(session)
        return session

    def _check_input(self, session: Any) -> None:
        inputs = session.get_inputs()
        described = ", ".join(f"{one.name} {one.type} {one.shape}" for one in inputs)
        expected = f"{self._path}: expected one input, tensor(float) [n, 3, height, width], found {described}"
        if len(inputs) != 1 or inputs[0].type != "tensor(float)" or len(inputs[0].shape) != 4:
            raise DataError(expected)
        _, channels, height, width = inputs[0].shape
        if channels != 3 and isinstance(channels, int):
            raise DataError(expected)
        fixed = [side for side in (height, width) if isinstance(side, int)]
        ours = self.preprocess
        if fixed and (ours.mode != "square" or any(side != ours.size for side in fixed)):
            made = f"{ours.size} by {ours.mode.replace('_', ' ')}"
            what = (
                f"give --size {fixed[0]} --preserve-aspect-ratio false"
                if len(set(fixed)) == 1
                else "export it otherwise"
            )
            raise DataError(f"{self._path}: takes pictures of {height} x {width} px only, not those of {made}; {what}")


def _text_at(model: memoryview, start: int) -> str:
    """A protobuf text: its length, seven bits per byte, then its letters."""
    length = shift = 0
    for byte in model[start : start + 4]:
        length, start, shift = length | (byte & 127) << shift, start + 1, shift + 7
        if byte < 128:
            break
    return bytes(model[start : start + length]).decode(errors="replace")
