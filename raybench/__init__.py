"""raybench: distributed batch evaluation, on Ray, of image and patch descriptors, copy detection and dense flow.

Folders in the order in which data meets them; a module imports its own folder and those above it:

    visible.py                      text from data, made safe for a terminal and a page
    errors.py digests.py table.py   the error tree; what identifies a thing; rows at full precision
    formats/                        bytes <-> values
    metrics/                        figures and mergeable results
    storage.py                      URIs <-> bytes
    sources/                        patches, images and vectors, ordered, digested, readable by range
    descriptors/                    what describes them
    engine/                         shards, stages, runs, executors (in this process, Ray)
    extract/                        source x descriptor -> vector sets
    search/                         exact search, codecs, score normalisation
    benchmarks/                     one folder per family
    runs/                           one evaluation from job to folder; finished runs, the page
    demo/                           small data sets made from real photos
    cli/                            the command line
"""

__version__ = "0.1.0"
