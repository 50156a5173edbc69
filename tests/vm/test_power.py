# SPDX-License-Identifier: Apache-2.0
"""Power cuts at any time: after the boot all desired pods run again, and their images are intact."""

import random

import pytest
import specs
from conftest import LARGE_IMAGES, POWER_CUTS

MANIFESTS = "/etc/kubernetes/manifests"
PODS = 6

# Writes, edits and removes manifests in quick succession. Each is written next to its place, synced and renamed.
CHURN = f"""
while :; do
    n=$((RANDOM % {PODS}))
    file={MANIFESTS}/churn$n.yaml
    if [ $((RANDOM % 3)) -eq 0 ]; then
        rm -f $file
    else
        sed "s/NAME/churn$n/; s/REVISION/$RANDOM/" /opt/test/template >$file.new
        sync $file.new
        mv $file.new $file
    fi
    sleep 0.$((RANDOM % 5))
done
"""

# Prints a line for each manifest whose container does not run the program of its image.
CHECK = f"""
for file in {MANIFESTS}/*.yaml; do
    name=$(basename $file .yaml)
    line=$(mainstay get pods | grep -E "^$name-machine +1/1 +Running") || {{ echo "$name does not run"; continue; }}
done
wanted=$(ls {MANIFESTS}/*.yaml | wc -l) running=$(pgrep -x sleep | wc -l)
[ $wanted -eq $running ] || echo "$running processes for $wanted manifests"
for pid in $(pgrep -x sleep); do
    digest=$(sha256sum </proc/$pid/root/bin/busybox)
    [ -n "$digest" ] && grep -qF "$digest" /opt/test/digests || echo "process $pid has a damaged root"
done
"""


def template(image):
    pod = specs.pod("NAME", {**specs.container(script="exec sleep 100000"), "image": image,
                             "env": [{"name": "EDITION", "value": "r-REVISION"}]})
    return specs.text(pod)


@pytest.fixture(scope="module")
def digests(machine):
    """Writes the digest of the program in each image archive to /opt/test/digests."""
    machine.run("for file in /opt/test/*.tar; do layer=$(tar -tf $file | grep -E '[.]tar$'); "
                "tar -xOf $file $layer | tar -xO bin/busybox | sha256sum; done >/opt/test/digests; sync")


def forget_image(machine, large):
    """Removes the image, which is unpacked again when its archive reappears."""
    machine.run(f"rm -f /var/lib/mainstay/preload/large{large}-1.tar")
    machine.wait(f"list=$(mainstay images) || exit 1; ! grep -w large{large} <<<\"$list\" || "
                 f"{{ mainstay images rm docker.io/library/large{large}:1; false; }}", "an image of an earlier cut is removed")


@pytest.mark.usefixtures("digests")
@pytest.mark.parametrize("cut", [0, *(pytest.param(cut, marks=pytest.mark.long) for cut in range(1, POWER_CUTS))])
def test_all_desired_pods_run_after_a_power_cut(machine, cut):
    large = cut % LARGE_IMAGES
    machine.write("/opt/test/template", template(specs.IMAGE))
    machine.write("/opt/test/churn", CHURN)
    machine.write(f"{MANIFESTS}/large.yaml.new", template(f"docker.io/library/large{large}:1").replace("NAME", "large"))
    forget_image(machine, large)
    machine.run(f"RANDOM={cut} setsid bash /opt/test/churn >/dev/null 2>&1 </dev/null & "
                f"cp /opt/test/large{large}-1.tar /var/lib/mainstay/preload/; sync; "
                f"mv {MANIFESTS}/large.yaml.new {MANIFESTS}/large.yaml; sleep {random.Random(cut).uniform(0, 3):.2f}")
    machine.cut_power()
    machine.boot()
    machine.wait(f"found=$({CHECK}); [ -z \"$found\" ] || {{ echo \"$found\"; false; }}",
                 f"all desired pods run after power cut {cut}")
