"""The launch files say what their readers understand: Ray's own schema, the fields KubeRay needs, a shell."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

WORKERS = Path(__file__).parents[2] / "workers"
STARTS = ("ray start --head", "ray start --address=")
TEMPLATE = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["containers"],
            "properties": {"containers": {"type": "array", "minItems": 1, "items": {"required": ["name", "image"]}}},
        }
    },
}
GROUP = {
    "type": "object",
    "required": ["rayStartParams", "template"],
    "properties": {
        "rayStartParams": {"type": "object", "additionalProperties": {"type": "string"}},
        "template": TEMPLATE,
    },
}
RAY_CLUSTER = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": "ray.io/v1"},
        "kind": {"const": "RayCluster"},
        "spec": {
            "type": "object",
            "required": ["headGroupSpec"],
            "properties": {
                "headGroupSpec": GROUP,
                "workerGroupSpecs": {
                    "type": "array",
                    "items": {
                        "allOf": [GROUP],
                        "required": ["groupName", "replicas", "minReplicas", "maxReplicas"],
                    },
                },
            },
        },
    },
}
"""What the operator refuses a RayCluster without."""


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((WORKERS / name).read_text()))


def test_ray_up_understands_its_file() -> None:
    from ray import autoscaler

    schema = json.loads((Path(autoscaler.__file__).parent / "ray-schema.json").read_text())
    (cluster,) = documents("ray-up.yaml")
    jsonschema.validate(cluster, schema)
    assert cluster["head_node_type"] in cluster["available_node_types"]
    for part in ("head", "worker"):
        assert any("RAY_AUTH_MODE=token" in command for command in cluster[f"{part}_start_ray_commands"])


def test_kuberay_understands_its_file_and_nobody_else_gets_in() -> None:
    secret, cluster, policy = documents("kuberay.yaml")
    jsonschema.validate(cluster, RAY_CLUSTER)
    groups = [cluster["spec"]["headGroupSpec"], *cluster["spec"]["workerGroupSpecs"]]
    for group in groups:
        (container,) = group["template"]["spec"]["containers"]
        environment = {one["name"]: one for one in container["env"]}
        assert environment["RAY_AUTH_MODE"]["value"] == "token"
        assert environment["RAY_AUTH_TOKEN"]["valueFrom"]["secretKeyRef"]["name"] == secret["metadata"]["name"]
    assert secret["stringData"] == {"token": ""}, "a token in a file is everybody's"
    labels = policy["spec"]["podSelector"]["matchLabels"]
    assert labels == {"ray.io/cluster": cluster["metadata"]["name"]}


def test_the_slurm_script_starts_a_ray_on_every_node_and_the_sweep_on_it(tmp_path: Path) -> None:
    for name in ("scontrol", "srun", "neuronqa", "sleep"):
        tool = tmp_path / name
        notes = f'echo "{name} $* token=${{#RAY_AUTH_TOKEN}}" >> "$SAID"'
        tool.write_text("#!/bin/sh\n" + ("printf '%s\\n' a b c" if name == "scontrol" else notes) + "\n")
        tool.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "SAID": str(tmp_path / "said"),
        "SLURM_JOB_NODELIST": "[a-c]",
        "SLURM_JOB_ID": "41007",
        "SLURM_CPUS_ON_NODE": "8",
    }
    script = ["bash", str(WORKERS / "slurm.sh")]
    subprocess.run([*script, "--catalog", "mini"], env=environment, check=True, timeout=60)
    said = (tmp_path / "said").read_text().splitlines()
    assert sum(line.startswith("srun") and any(start in line for start in STARTS) for line in said) == 3
    assert "neuronqa sweep --address a:21007 --catalog mini token=64" in said
    assert any("-w a " in line and "--head" in line and "--num-cpus=7" in line for line in said)


def test_the_slurm_script_without_options_says_how_it_is_used() -> None:
    done = subprocess.run(["bash", str(WORKERS / "slurm.sh")], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr.split()[0]) == (2, "usage:")


@pytest.mark.parametrize("name", ["ray-up.yaml", "kuberay.yaml"])
def test_every_node_runs_the_image_that_the_dockerfile_makes(name: str) -> None:
    text = (WORKERS / name).read_text()
    assert "neuronqa:latest" in text
    assert "docker build -f workers/Dockerfile -t neuronqa ." in (WORKERS / "Dockerfile").read_text()
