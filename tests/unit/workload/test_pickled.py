"""A handed-over object finds, in a process that never imported its module, all that its code names."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from neuronqa.workload import pickled

SCRIPT = """
import collections, hashlib, json, sys
from pathlib import Path
from types import ModuleType
import cloudpickle

{module}
data = cloudpickle.dumps(Counter())
Path({path!r}).write_bytes(data)
print(hashlib.sha256(data).hexdigest())
"""
CLASS = """
class Counter:
    def count(self, text):
        return collections.Counter(text)
"""
IN_A_MODULE = f"""
notebook = ModuleType("notebook")
notebook.collections = collections
exec({CLASS!r}, vars(notebook))
sys.modules["notebook"] = notebook
cloudpickle.register_pickle_by_value(notebook)
Counter = notebook.Counter
"""
READ = """
import json, sys
from neuronqa.workload.pickled import load
counter = load({path!r}, {digest!r})
home = sys.modules[{home!r}]
print(json.dumps([counter.count("aab"), home.collections.__name__]))
"""


def run(text: str) -> str:
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize(("home", "module"), [("__main__", CLASS), ("notebook", IN_A_MODULE)])
def test_what_its_functions_use_is_found_under_the_name_of_their_module(home: str, module: str, tmp_path: Path) -> None:
    """As dynamo's guards look for it: `__import__(function.__module__).name`."""
    path = str(tmp_path / "handed.pickle")
    digest = run(SCRIPT.format(module=module, path=path))
    assert json.loads(run(READ.format(path=path, digest=digest, home=home))) == [{"a": 2, "b": 1}, "collections"]


def test_another_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"x")
    with pytest.raises(ValueError, match="not the file"):
        pickled.load(str(tmp_path / "other"), "0" * 64)
