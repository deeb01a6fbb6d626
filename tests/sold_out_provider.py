"""Ray's fake provider of nodes, in a cloud whose spot machines are sold out. The autoscaler's process imports it."""

from pathlib import Path

from ray.autoscaler._private.fake_multi_node.node_provider import FakeMultiNodeProvider
from ray.autoscaler.node_launch_exception import NodeLaunchException
from ray.autoscaler.tags import TAG_RAY_USER_NODE_TYPE


class SoldOutSpot(FakeMultiNodeProvider):
    """Gives on-demand nodes only; `refused` and `made` in the home folder tell the types that were asked for."""

    def create_node_with_resources_and_labels(self, node_config, tags, count, resources, labels):
        is_spot = labels.get("ray.io/market-type") == "spot"
        with (Path.home() / ("refused" if is_spot else "made")).open("a") as file:
            file.write(f"{tags[TAG_RAY_USER_NODE_TYPE]}\n")
        if is_spot:
            raise NodeLaunchException("InsufficientInstanceCapacity", "no spot machine is left", None)
        super().create_node_with_resources_and_labels(node_config, tags, count, resources, labels)
