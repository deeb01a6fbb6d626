"""Descriptors of the tests' own, as a user would write them: `module:Class` specs of the command line."""

import os
import time
import uuid
from pathlib import Path

import numpy as np


class Block4:
    """The golden descriptor: 4x4 block sums, mean taken off, over the standard deviation, four decimals."""

    name = "block4"

    def prepare(self, patches):
        return patches

    def describe(self, patches):
        n, side, _ = patches.shape
        block = side // 4
        cut = patches[:, : 4 * block, : 4 * block].astype(np.int64)
        sums = cut.reshape(n, 4, block, 4, block).sum((2, 4)).reshape(n, 16)
        centred = 16 * sums - sums.sum(1, keepdims=True)
        std = np.sqrt((centred * centred).sum(1, keepdims=True) / 16.0)
        return np.round(centred / np.maximum(std, 1.0), 4)


class MinusBatchMean(Block4):
    """Rows that depend on the others of their batch."""

    uses_gpu = False

    def describe(self, patches):
        rows = super().describe(patches)
        return rows - rows.mean(0)


class MinusStripMean(MinusBatchMean):
    """Rows that depend on the others of their strip, by what `prepare` makes of it."""

    def prepare(self, patches):
        return MinusBatchMean.describe(self, patches)

    def describe(self, rows):
        return rows


class MeetingBlock4(Block4):
    """Block4 that at its `call`-th call says where it is in `folder/here`, and waits while `folder/wait` exists."""

    digest = "block4"  # what comes and goes in the folder changes no vector

    def __init__(self, folder, call=1):
        self.folder, self.call, self.calls = Path(folder), call, 0

    def describe(self, patches):
        self.calls += 1
        if self.calls == self.call and (self.folder / "wait").exists():
            (self.folder / "here.tmp").write_text(str(os.getpid()))
            (self.folder / "here.tmp").rename(self.folder / "here")
            while (self.folder / "wait").exists():
                time.sleep(0.02)
        return super().describe(patches)


class NotingBlock4(Block4):
    """Block4 that leaves a file in a folder for every strip that it prepares, with the node's name."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def prepare(self, patches):
        import ray

        node = ray.get_runtime_context().get_node_id() if ray.is_initialized() else "here"
        (self.folder / f"{node}-{uuid.uuid4().hex}").touch()
        return patches


class Dying(Block4):
    """Ends its process at every call."""

    def describe(self, patches):
        os._exit(1)


class Failing(Block4):
    """Raises at every call, with an exception that does not pickle."""

    def describe(self, patches):
        class Unpicklable(Exception):
            def __init__(self, a, b):
                super().__init__(f"{a} {b}")

        raise Unpicklable("no", "luck")


class Leaking(Block4):
    """Raises as a library would that shows what it was given: a signed URL, and the secrets of the environment."""

    def describe(self, patches):
        secrets = {name: value for name, value in os.environ.items() if "PLANTED" in name or name.startswith("AWS_")}
        url = f"https://{os.environ['PLANTED_PASSWORD']}@host/a?X-Amz-Signature=planted-sig&sig=planted-too"
        raise OSError(f"GET {url} with Authorization: planted-header failed in {secrets}")


class NotANumber(Block4):
    """Gives NaN for the third patch."""

    def describe(self, patches):
        vectors = super().describe(patches)
        vectors[2] = np.nan
        return vectors


class WrongShape(Block4):
    """Gives one row too few."""

    def describe(self, patches):
        return super().describe(patches)[1:]


class Varying(Block4):
    """Gives vectors of another dimension for strips of another length."""

    def describe(self, patches):
        return super().describe(patches)[:, : len(patches)]


class Floats(Block4):
    """Says that it is binary, and is not."""

    distance = "hamming"


class Climbing(Block4):
    """Has a name that leads out of its folder."""

    name = "../../escaped"


class Unnamed(Block4):
    """Has a property for a name, as the protocol allows; the class's own name serves."""

    @property
    def name(self):
        return "unnamed"


class Block20:
    """The golden descriptor of the 2017 protocol: 4x5 block sums, mean taken off, over the deviation, four decimals."""

    name = "block20"

    def prepare(self, patches):
        return patches

    def describe(self, patches):
        rows, cols = 4, 5
        height, width = patches.shape[1] // rows, patches.shape[2] // cols
        cut = patches[:, : rows * height, : cols * width].astype(np.int64)
        sums = cut.reshape(len(cut), rows, height, cols, width).sum((2, 4)).reshape(len(cut), -1)
        centred = rows * cols * sums - sums.sum(1, keepdims=True)
        std = np.sqrt((centred * centred).sum(1, keepdims=True) / float(rows * cols))
        return np.round(centred / np.maximum(std, 1.0), 4)


class Collapsed:
    """A network that never saw its weights: every patch gets the same vector."""

    name = "collapsed"

    def prepare(self, patches):
        return patches

    def describe(self, patches):
        return np.ones((len(patches), 8))


class FailingOnce(Block4):
    """Raises at its first call anywhere, which it notes in a folder that the environment names."""

    def describe(self, patches):
        mark = Path(os.environ["FAILED_ONCE"]) / "failed"
        if not mark.exists():
            mark.touch()
            raise RuntimeError("the first call fails")
        return super().describe(patches)
