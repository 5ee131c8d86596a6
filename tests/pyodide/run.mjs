// Runs tests on CPython compiled to WebAssembly, in node:
//
//     npm install --prefix /some/folder pyodide
//     python -m build --wheel
//     NODE_PATH=/some/folder/node_modules node tests/pyodide/run.mjs dist/tapegrad-*.whl
//
// The meaning of reference counts needs no NumPy. The tests of the tape need Pyodide's build of it, which is fetched from
// Pyodide's server; without it they are skipped, with the reason. Ends with status 1 if a test fails.

import { createRequire } from "node:module";
import { readFileSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const { loadPyodide } = createRequire(join(process.env.NODE_PATH ?? ".", "_"))("pyodide");
const tests = dirname(dirname(fileURLToPath(import.meta.url)));
const root = dirname(tests);
const python = await loadPyodide();

python.FS.mkdirTree("/tree/tapegrad");
python.FS.mkdirTree("/tree/tests/data");
const copy = (name) => python.FS.writeFile(`/tree/${name}`, readFileSync(join(root, name)));
copy("tapegrad/refcount.py");
copy("pyproject.toml");
readdirSync(tests).filter((name) => /\.(py|tsv|txt)$/.test(name)).forEach((name) => copy(`tests/${name}`));

python.runPython(`
import runpy, sys
print("Python", sys.version.split()[0], "on", sys.platform)
sys.argv = ["/tree/tests/test_refcount.py", "--inner", "/tree/tapegrad"]
runpy.run_path(sys.argv[0], run_name="__main__")
`);

const missing = [];
await python.loadPackage(["numpy", "pytest"], { errorCallback: (text) => missing.push(text) }).catch((error) => missing.push(error.message));
const ready = python.runPython(`
import importlib.util
all(importlib.util.find_spec(name) for name in ("numpy", "pytest"))
`);
const wheel = process.argv[2];
if (!ready || !wheel) {
  console.log(`skipped: the tests of the tape (${wheel ? missing[0] ?? "no NumPy" : "no wheel given"})`);
  process.exit(0);
}
python.FS.writeFile(`/${basename(wheel)}`, readFileSync(wheel));
python.globals.set("wheel", `/${basename(wheel)}`);
process.exit(python.runPython(`
import os, shutil, sys, zipfile
shutil.rmtree("/tree/tapegrad")
zipfile.ZipFile(wheel).extractall("/site")
sys.path.insert(0, "/site")
os.chdir("/tree")
import pytest
pytest.main(["-p", "no:cacheprovider", *[f"tests/test_{name}.py" for name in (
    "refcount", "tape", "views", "shared_memory", "backward_semantics", "hooks", "nested_passes", "strong_zero", "func",
)]])
`));
