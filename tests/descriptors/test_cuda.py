"""Which device torch computes on: a GPU that is there but of no use is refused, a logical one is none."""

import subprocess
import sys

import pytest

from raybench.descriptors.cuda import GpuFacts, device_for_torch, driver_version
from raybench.descriptors.specs import moved
from raybench.errors import ConfigError

GOOD = GpuFacts(True, "580.82.07", "2.13.0+cu130", "A10G", 21 * 2**30, 22 * 2**30)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023\nGCC", "535.129.03"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82.07  Release Build\n", "580.82.07"),
        ("something else", ""),
    ],
)
def test_the_version_of_the_driver_is_what_its_kernel_module_says(tmp_path, text, version):
    (tmp_path / "version").write_text(text)
    assert driver_version(tmp_path / "version") == version
    assert driver_version(tmp_path / "none") == ""


def test_torch_computes_on_a_gpu_that_was_granted_and_is_there():
    assert device_for_torch(True, GOOD) == "cuda"
    assert device_for_torch(False, GOOD) == "cpu"
    assert device_for_torch(True, GpuFacts(is_there=False)) == "cpu"


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (
            GpuFacts(True, "470.57", "2.13.0+cu130", problem="The NVIDIA driver on your system is too old"),
            r"torch 2\.13\.0\+cu130 can't use it with driver 470\.57 \(The NVIDIA driver .* too old\); install",
        ),
        (GpuFacts(True, "", "2.13.0+cpu", problem="this build of torch is for CPUs"), r"driver unknown \(this build"),
        (GpuFacts(True, "580", "2.13.0", "A10G", 3 * 2**20, 2**34), "3 of 16,384 MB are free, expected 1,024; end"),
    ],
)
def test_a_gpu_of_no_use_is_refused_in_one_line(facts, words):
    with pytest.raises(ConfigError, match=words) as raised:
        device_for_torch(True, facts)
    assert "\n" not in str(raised.value)
    assert "--device cpu" in str(raised.value)


def test_a_descriptor_without_to_does_not_bring_torch_and_a_cpu_does_not_either():
    code = (
        "import sys; from raybench.descriptors.cuda import device_for_torch, give_back_memory;"
        "device_for_torch(False); give_back_memory(); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert moved(plain := object(), gpu=True) is plain
