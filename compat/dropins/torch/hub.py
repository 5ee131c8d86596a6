"""torch.hub: hubconf.py of a folder on this machine, and files that are there; nothing is downloaded."""

import builtins
import importlib.util
import os
import re
import sys
from urllib.parse import urlparse

import torch

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # in the names of files with weights
_NO_DOWNLOADS = "tapegrad downloads nothing"
_dir: str | None = None


def get_dir() -> str:
    """The folder of what was downloaded before: set_dir's, $TORCH_HOME/hub, or ~/.cache/torch/hub."""
    cache = os.path.join(os.getenv("XDG_CACHE_HOME", "~/.cache"), "torch")
    return _dir or os.path.join(os.path.expanduser(os.getenv("TORCH_HOME", cache)), "hub")


def set_dir(d: str) -> None:
    """Set the folder."""
    global _dir
    _dir = os.path.expanduser(d)


def _hubconf(repo_or_dir: str, source: str) -> object:
    folder = repo_or_dir
    if source != "local":
        owner, _, name = repo_or_dir.partition("/")
        name, _, branch = name.partition(":")
        known = [os.path.join(get_dir(), f"{owner}_{name}_{b}") for b in ([branch] if branch else ["main", "master"])]
        folder = next((f for f in known if os.path.isdir(f)), None)
        if folder is None:
            raise RuntimeError(f"torch.hub: {_NO_DOWNLOADS}: clone {repo_or_dir} and load the folder with source='local'")
    path = os.path.join(os.path.expanduser(folder), "hubconf.py")
    sys.path.insert(0, os.path.dirname(path))
    try:
        spec = importlib.util.spec_from_file_location("hubconf", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(os.path.dirname(path))
    return module


def _entry(module: object, name: str) -> object:
    found = getattr(module, name, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return found


def load(repo_or_dir: str, model: str, *args: object, source: str = "github", **kwargs: object) -> object:
    """Call the function `model` of a folder's hubconf.py.

    Args:
        repo_or_dir: the folder (source="local"), or "owner/name[:branch]" of a repository that lies in get_dir() already.

    Raises:
        RuntimeError: it is not there.
    """
    for setting in ("trust_repo", "force_reload", "verbose", "skip_validation"):
        kwargs.pop(setting, None)
    return _entry(_hubconf(repo_or_dir, source), model)(*args, **kwargs)


def list(github: str, source: str = "github", **kwargs: object) -> builtins.list:
    """The names of the functions of a hubconf.py; see load."""
    module = _hubconf(github, source)
    return [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]


def help(github: str, model: str, source: str = "github", **kwargs: object) -> str | None:
    """The docstring of a function of a hubconf.py; see load."""
    return _entry(_hubconf(github, source), model).__doc__


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Raises: nothing is downloaded."""
    raise RuntimeError(f"torch.hub: {_NO_DOWNLOADS}: fetch {url} to {dst} yourself")


def load_state_dict_from_url(
    url: str, model_dir: str | None = None, map_location: object = None, progress: bool = True, check_hash: bool = False,
    file_name: str | None = None, weights_only: bool = False,
) -> object:  # fmt: skip
    """Load a file that was downloaded before to model_dir, or to get_dir()/checkpoints.

    Raises:
        RuntimeError: it is not there.
    """
    folder = model_dir or os.path.join(get_dir(), "checkpoints")
    path = os.path.join(folder, file_name or os.path.basename(urlparse(url).path))
    if not os.path.exists(path):
        download_url_to_file(url, path)
    return torch.load(path, map_location=map_location, weights_only=weights_only)
