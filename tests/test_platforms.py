"""What other systems lack is asked for before it is used, and what then takes its place works; texts name their encoding.

Names that Windows or macOS lacks are found in the source; programs run in processes from which those names were taken.
"""

import ast
import functools
import os
import pathlib
import re
import subprocess
import sys

import pytest

import tapegrad

ROOT = pathlib.Path(tapegrad.__file__).parent
FILES = sorted(ROOT.rglob("*.py")) + sorted((ROOT.parent / "compat" / "dropins").rglob("*.py"))
LACKING = {  # what Windows lacks, of each module; macOS lacks those of LINUX
    "os": """
        O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK O_SYNC O_TMPFILE WEXITSTATUS WIFEXITED WIFSIGNALED WNOHANG chown chroot
        confstr copy_file_range ctermid eventfd fchdir fchmod fchown fork forkpty fstatvfs getegid geteuid getgid getloadavg
        getpgid getpgrp getrandom getuid killpg lchown lockf major memfd_create minor mkfifo mknod nice openpty pipe2
        posix_fadvise posix_fallocate posix_spawn pread preadv pwrite readv register_at_fork sched_getaffinity
        sched_setaffinity sched_yield sendfile setegid setgid setpgid setsid setuid splice statvfs sync sysconf tcgetpgrp
        ttyname uname wait wait3 wait4 waitid writev
    """,
    "select": "POLLIN POLLOUT devpoll epoll kqueue poll",
    "signal": """
        SIGALRM SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGUSR1 SIGUSR2 alarm pause pthread_kill
        pthread_sigmask setitimer sigwait
    """,
    "socket": "AF_UNIX SCM_RIGHTS",
    "time": "CLOCK_MONOTONIC CLOCK_REALTIME clock_gettime pthread_getcpuclockid tzset",
    "mmap": "MAP_ANONYMOUS MAP_PRIVATE MAP_SHARED PROT_READ PROT_WRITE",
    "multiprocessing.reduction": "DupFd recvfds sendfds",
}
LACKING = {module: set(names.split()) for module, names in LACKING.items()}
MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty"}
LINUX = {"copy_file_range", "eventfd", "memfd_create", "sched_getaffinity", "splice"}
PLACES = re.compile(r"^/(dev|etc|home|proc|sys|tmp|usr|var)(/|$)|^libc\b")
CHECKS = re.compile(r"hasattr\(|\bos\.name\b|\bsys\.platform\b|\bPOSIX\b")


@functools.cache
def parsed(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            child.parent = node
    return tree


def uses(tree):
    """(node, name) of what a system may lack."""
    modules = {}  # names in the file to modules
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules.update({a.asname or a.name: a.name for a in node.names})
            yield from ((node, a.name) for a in node.names if a.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((node, a.name) for a in node.names if a.name in LACKING.get(node.module, ()))
            yield from ((node, node.module) for _ in [0] if node.module in MODULES)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in LACKING.get(modules.get(node.value.id), ()):
                yield node, node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and PLACES.search(node.value):
            yield from [(node, node.value)] * (not isinstance(node.parent, ast.Expr))  # of a docstring none


def is_behind_a_check(node):
    """Whether a branch on what the system has, or an exception's handler, stands around a node or leaves before it."""
    while (parent := getattr(node, "parent", None)) is not None:
        if isinstance(parent, ast.If | ast.IfExp) and CHECKS.search(ast.unparse(parent.test)):
            return True
        if isinstance(parent, ast.IfExp) and isinstance(parent.test, ast.Name) and parent.test.id.startswith("has_"):
            return True
        if isinstance(parent, ast.Try) and parent.handlers and node in parent.body:
            return True
        if isinstance(parent, ast.FunctionDef):
            before = parent.body[: parent.body.index(node)] if node in parent.body else []
            if any(isinstance(s, ast.If) and CHECKS.search(ast.unparse(s.test)) and leaves(s) for s in before):
                return True
        node = parent
    return False


def leaves(branch):
    return isinstance(branch.body[-1], ast.Return | ast.Raise)


def unchecked(tree):
    return [f"line {node.lineno}: {name}" for node, name in uses(tree) if not is_behind_a_check(node)]


@pytest.mark.exhaustive
def test_what_a_system_may_lack_stands_behind_a_check():
    found = {str(p.relative_to(ROOT.parent)): unchecked(parsed(p)) for p in FILES}
    assert {p: lines for p, lines in found.items() if lines} == {}
    assert sum(len(list(uses(parsed(p)))) for p in FILES) >= 8, "nothing was looked for"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import os\nos.fork()", 1),
        ("import os as o\ndef f(): return o.memfd_create('x')", 1),
        ("from os import sched_getaffinity", 1),
        ("import fcntl", 1),
        ("path = '/tmp/x'", 1),
        ("import ctypes\nctypes.CDLL('libc.so.6')", 1),
        ("import os\nif hasattr(os, 'fork'): os.fork()", 0),
        ("import os\ndef f():\n    if os.name != 'posix':\n        return\n    os.fork()", 0),
        ("import os\ndef f():\n    if os.name != 'posix':\n        print()\n    os.fork()", 1),
        ("try:\n    import resource\nexcept ImportError:\n    pass", 0),
        ("import os\nos.getpid(), os.cpu_count(), os.path.join('a', 'b')", 0),
    ],
)
def test_the_search_for_what_systems_lack(tmp_path, text, expected):
    (tmp_path / "m.py").write_text(text, encoding="utf-8")
    assert len(unchecked(parsed(tmp_path / "m.py"))) == expected


def without_encoding(tree):
    """Lines that open a text and leave its encoding to the system."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or any(k.arg == "encoding" for k in node.keywords):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in ("read_text", "write_text", "TextIOWrapper") and not own_method(node):
            yield node.lineno
        elif name == "open" and isinstance(node.func, ast.Name):
            modes = [*node.args[1:2], *[k.value for k in node.keywords if k.arg == "mode"]]
            if not any(isinstance(m, ast.Constant) and "b" in m.value for m in modes):
                yield node.lineno
        elif any(k.arg in ("text", "universal_newlines") for k in node.keywords):
            yield node.lineno


def own_method(call):
    """Whether a method called read_text is one of the package's own, which reads a text of its own."""
    return isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) in ("self", "super()")


@pytest.mark.exhaustive
def test_texts_name_their_encoding():
    found = {str(p.relative_to(ROOT.parent)): list(without_encoding(parsed(p))) for p in FILES}
    assert {p: lines for p, lines in found.items() if lines} == {}


# -------------------------------------------------------------------------------------------------------- other systems

# The standard library keeps what it needs here: it is imported before the names are taken away.
TAKEN = """
import asyncio, ctypes, logging, multiprocessing.connection, multiprocessing.popen_spawn_posix, multiprocessing.process
import multiprocessing.reduction, multiprocessing.resource_sharer, multiprocessing.resource_tracker, multiprocessing.spawn
import mmap, os, pathlib, random, select, selectors, shutil, signal, socket, subprocess, sys, tempfile, threading, time
KEPT = {KEPT}
for module, names in {LACKING}.items():
    for name in names:
        if name not in KEPT and module != "multiprocessing.reduction":
            vars(sys.modules[module]).pop(name, None)
sys.platform = {PLATFORM!r}
if sys.platform == "win32":
    tempfile.TemporaryFile = tempfile.NamedTemporaryFile  # as there
import builtins
lacking, imported = {MODULES}, builtins.__import__
def without(name, *args, **kwargs):
    if name in lacking and name not in sys.modules:
        raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
    return imported(name, *args, **kwargs)
builtins.__import__ = without
"""
PROGRAM = """
import io, pickle, sys, tempfile, pathlib, warnings
import numpy as np
import tapegrad as tg

class Squares(tg.utils.data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        assert (sys.platform == "linux") == LINUX
        return tg.tensor(float(i) ** 2)

def train():
    tg.manual_seed(0)
    net = tg.nn.Sequential(tg.nn.Linear(4, 8), tg.nn.Tanh(), tg.nn.Linear(8, 1))
    optimizer = tg.optim.Adam(net.parameters(), lr=0.05)
    x = tg.randn(64, 4)
    y = x.sum(1, keepdim=True)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = tg.nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0], losses
    big = tg.randn(256, 256, requires_grad=True)
    (big @ big).sum().backward()
    return net

def files(net):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "état.pt"
        for _ in range(2):
            tg.save(net.state_dict(), path)
        assert [p.name for p in pathlib.Path(folder).iterdir()] == [path.name]
        loaded = tg.load(path)
    assert all(tg.equal(loaded[k], v) for k, v in net.state_dict().items())

def shared(net):
    t = tg.arange(5.0).share_memory_()
    assert t.is_shared() and t.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    t.add_(1.0)
    assert t.sum().item() == 15.0
    assert pickle.loads(pickle.dumps(t)).tolist() == t.tolist()

def loaders():
    for workers in (0, 1):
        loader = tg.utils.data.DataLoader(
            Squares(), batch_size=4, num_workers=workers, multiprocessing_context="spawn" if workers else None
        )
        assert [b.tolist() for b in loader] == [[0.0, 1.0, 4.0, 9.0], [16.0, 25.0]]

if __name__ == "__main__":
    net = train()
    files(net)
    shared(net)
    loaders()
    assert tg.get_num_threads() >= 1
    assert tg.func.hessian(lambda v: (v**3).sum())(np.array([1.0, 2.0])).tolist() == [[6.0, 0.0], [0.0, 12.0]]
    print("done", len(tg.tape()))
"""
USED_HERE = {  # by this system's standard library while it runs
    "AF_UNIX", "O_NONBLOCK", "SCM_RIGHTS", "SIGKILL", "WEXITSTATUS", "WIFEXITED", "WIFSIGNALED", "WNOHANG", "getpgrp",
    "pthread_sigmask",
}  # fmt: skip
SYSTEMS = {"win32": (LACKING, MODULES), "darwin": ({"os": LINUX}, set()), "linux": ({}, set())}


@pytest.mark.every(3)
@pytest.mark.skipif(os.name != "posix", reason="takes from a POSIX system what others lack")
@pytest.mark.parametrize("system", SYSTEMS)
def test_the_main_things_work_without_what_a_system_lacks(tmp_path, system):
    lacking, modules = SYSTEMS[system]
    taken = TAKEN.format(LACKING=lacking, MODULES=modules, KEPT=USED_HERE, PLATFORM=system)
    script = tmp_path / "program.py"
    script.write_text(f"{taken}\nLINUX = {system == 'linux'}\n{PROGRAM}", encoding="utf-8")
    options = ["-X", "warn_default_encoding", "-W", "error::EncodingWarning"]
    command = [sys.executable, *options, str(script)]
    done = subprocess.run(command, capture_output=True, timeout=120, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("done")
