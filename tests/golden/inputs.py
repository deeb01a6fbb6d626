"""What the scripts that make golden inputs share: patches and their descriptors, rows of length one, files."""
import os, sys
import numpy as np
from PIL import Image

TYPES = ["ref"] + [t + str(i) for t in "eht" for i in range(1, 6)]
STRENGTH = {"r": (0, 0), "e": (2, 24), "h": (5, 60), "t": (8, 90)}          # shift in px, change of grey per cell


def make_patches(seed, seqs, lo, hi):
    """{sequence: {image: uint8 [N, 65, 65]}}: 13 px cells of plain grey, so that the PNGs stay small.
    Whole-number arithmetic only."""
    rng = np.random.default_rng(seed)
    out = {}
    for s in seqs:
        n = int(rng.integers(lo, hi + 1))
        cells = rng.integers(2, 15, (n, 7, 7)) * 16
        cells[n - 1] = cells[n - 2]                                          # twins: exact ties
        out[s] = {}
        for t in TYPES:
            shift, amp = STRENGTH[t[0]]
            k = int(t[1]) if t != "ref" else 0
            c = cells + rng.integers(-amp, amp + 1, cells.shape) // 8 * 8
            d = rng.integers(-shift, shift + 1, (n, 2))
            if k == 1:                                                       # the twins and one more stay as they are in e1, h1, t1
                c[-3:], d[-3:] = cells[-3:], 0
            if s[0] == "i":
                c = c * (20 - k) // 20 + 2 * k                               # light gets weaker
            big = np.repeat(np.repeat(c, 13, 1), 13, 2)
            out[s][t] = np.stack([np.clip(big[i, 13 + a:78 + a, 13 + b:78 + b], 0, 255) for i, (a, b) in enumerate(d)]).astype(np.uint8)
    return out


def block_sums(p, rows, cols):
    h, w = 65 // rows, 65 // cols
    c = p[:, :h * rows, :w * cols].astype(np.int64)
    return c.reshape(-1, rows, h, cols, w).sum((2, 4)).reshape(-1, rows * cols), h * w


def describe(p, rows=4, cols=4, decimals=4):
    """block sums, mean taken off, divided by the standard deviation, rounded"""
    c, _ = block_sums(p, rows, cols)
    x = rows * cols * c - c.sum(1, keepdims=True)
    std = np.sqrt((x * x).sum(1, keepdims=True) / float(rows * cols))
    return np.round(x / np.maximum(std, 1.0), decimals)


def write_text(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", newline="\n") as f:
        f.write(text)


def write_rows(path, rows):
    write_text(path, "\n".join(rows) + "\n")


def write_strips(out, pats):
    for s in pats:
        os.makedirs(os.path.join(out, "hpatches", s), exist_ok=True)
        for t, p in pats[s].items():
            Image.fromarray(p.reshape(-1, 65)).save(os.path.join(out, "hpatches", s, t + ".png"), optimize=True)


def write_descriptors(out, name, desc, sep, fmt):
    for s in desc:
        for t, d in desc[s].items():
            write_rows(os.path.join(out, "descriptors", name, s, t + ".csv"), [sep.join(fmt % v for v in r) for r in d])


def unit(v):
    """rows of whole numbers at length one, in float32"""
    v = v.astype(np.int64)
    return (v / np.sqrt((v * v).sum(1, keepdims=True).astype(np.float64))).astype(np.float32)


def folder_given(script):
    """OUT of the command line, or the data that stand beside the script"""
    given = [a for a in sys.argv[1:] if not a.startswith("--")]
    return given[0] if given else os.path.join(os.path.dirname(os.path.abspath(script)), "data")
