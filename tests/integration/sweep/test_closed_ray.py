"""A local Ray that nobody else can talk to: who listens, who is answered, and what is left afterwards."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from tests.powerless import without_admin

ROOT = Path(__file__).parents[3]

LISTENING = """
def listening():
    found = []
    for name in ("tcp", "tcp6"):
        for line in open(f"/proc/self/net/{name}").read().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                address, _, port = fields[1].rpartition(":")
                words = [address[n : n + 8] for n in range(0, len(address), 8)]
                packed = b"".join(bytes.fromhex(word)[::-1] for word in words)
                found.append([str(ipaddress.ip_address(packed)), int(port, 16)])
    return sorted(found)
"""

PEER = """
import sys
from ray._raylet import GcsClient
try:
    GcsClient(address=sys.argv[1]).get_all_node_info(timeout=10)
    print("answered")
except Exception as error:
    print(type(error).__name__)
"""

HOST = f"""
import ipaddress, json, os, socket, subprocess, sys, urllib.error, urllib.request
from neuronqa.sweep.closed_ray import local_ray
from neuronqa.sweep.private_network import enter_private_network
{LISTENING}
def peer(environment):
    clean = {{name: value for name, value in os.environ.items() if not name.startswith("RAY_")}}
    command = [sys.executable, "-c", {PEER!r}, address]
    return subprocess.run(command, env=clean | environment, capture_output=True, text=True).stdout.strip()

def submit_job(host, port):
    url = f"http://{{host}}:{{port}}/api/job_agent/jobs/"
    request = urllib.request.Request(url, data=b'{{"entrypoint": "id"}}', method="POST")
    try:
        return urllib.request.build_opener(urllib.request.ProxyHandler({{}})).open(request, timeout=3).status
    except urllib.error.HTTPError as error:
        return error.code
    except Exception as error:
        return 0

private = enter_private_network()
before = listening()
with local_ray(1) as environment:
    import ray
    address = ray.get_runtime_context().gcs_address
    opened = [one for one in listening() if one not in before]
    host = address.rpartition(":")[0]
    temp = os.path.dirname(os.path.dirname(ray._private.worker._global_node.get_session_dir_path()))
    facts = {{
        "private": private,
        "interfaces": sorted(name for _, name in socket.if_nameindex()),
        "opened": opened,
        "gcs": address,
        "stranger": peer({{}}),
        "guesser": peer({{"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64}}),
        "ours": peer(environment),
        "jobs": sorted({{submit_job(host, port) for _, port in opened}}),
        "session": temp,
        "mode": oct(os.stat(temp).st_mode & 0o777),
    }}
    print(json.dumps(facts), flush=True)
    sys.stdin.readline()
print(json.dumps({{"left": os.path.exists(temp), "token": "RAY_AUTH_TOKEN" in os.environ}}))
"""


def processes_of(session: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if session in line:
            found.append(line[:100])
    return found


def test_a_local_ray_answers_nobody_without_its_token() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", HOST],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    line = child.stdout.readline()
    assert line, child.communicate()
    facts: dict[str, Any] = json.loads(line)
    try:
        assert facts["opened"]
        assert facts["stranger"] == facts["guesser"] == "AuthenticationError"
        assert facts["ours"] == "answered"
        assert facts["mode"] == "0o700"
        # 200 would be a job taken; what speaks no HTTP, and metrics (405), take none.
        assert 401 in facts["jobs"]
        assert set(facts["jobs"]) <= {0, 401, 404, 405}
        assert 8265 not in {port for _, port in facts["opened"]}
        if facts["private"]:
            assert facts["interfaces"] == ["lo"]
            assert all(loopback(address) for address, _ in facts["opened"])
            assert_unreachable_from_here(facts["gcs"])
    finally:
        child.stdin.write("\n")
        out, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    assert json.loads(out.splitlines()[-1]) == {"left": False, "token": False}
    assert processes_of(facts["session"]) == []


def loopback(address: str) -> bool:
    parsed = ip_address(address)
    mapped = getattr(parsed, "ipv4_mapped", None)
    return (mapped or parsed).is_loopback


def assert_unreachable_from_here(address: str) -> None:
    host, _, port = address.rpartition(":")
    with pytest.raises(OSError, match="refused"), socket.create_connection((host, int(port)), timeout=5):
        pytest.fail("a peer outside the private network was connected")


ENTER = (
    "import os, socket\n"
    "from neuronqa.sweep.private_network import enter_private_network\n"
    "before = os.readlink('/proc/self/ns/net')\n"
    "entered = enter_private_network()\n"
    "moved = os.readlink('/proc/self/ns/net') != before\n"
    "with socket.create_server(('127.0.0.1', 0)) as server:\n"
    "    socket.create_connection(server.getsockname()).close()\n"
    "print(entered, moved, os.getuid())\n"
)


@pytest.mark.parametrize("powers", [None, without_admin], ids=["as I am", "without privileges"])
def test_a_private_network_has_a_loopback_or_nothing_changed(powers: Callable[[], None] | None) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENTER],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        preexec_fn=powers,
    )
    assert done.returncode == 0, done.stderr
    entered, moved, uid = done.stdout.split()
    assert entered == moved
    assert int(uid) == os.getuid()


def test_where_a_private_network_is_forbidden_nothing_changes() -> None:
    """A second thread makes the kernel refuse a user namespace; without privileges there is no other way."""
    threaded = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n" + ENTER
    done = subprocess.run(
        [sys.executable, "-c", threaded],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        preexec_fn=without_admin,
    )
    assert done.stdout.split()[:2] == ["False", "False"], done.stderr
