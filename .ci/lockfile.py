"""Checks Cargo.lock and the manifests: one source, exact pins, and none of the versions that must not be here."""
import pathlib
import re
import subprocess
import sys
import json

SOURCE = "registry+https://github.com/rust-lang/crates.io-index"
BANNED = {"bincode": "3.", "sled": "1."}
# Licences that may be part of what is shipped.
LICENCES = {
    "Apache-2.0", "MIT", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Unicode-3.0", "Zlib", "CC0-1.0", "BSL-1.0",
    "Unlicense", "0BSD", "MIT-0", "Apache-2.0 WITH LLVM-exception", "curl",
}
# Licences of single packages: see deny.toml.
EXCEPTIONS = {"smartstring": "MPL-2.0+"}
problems = []
root = pathlib.Path(__file__).resolve().parent.parent
lock = (root / "Cargo.lock").read_text()
for block in lock.split("[[package]]")[1:]:
    field = dict(re.findall(r'^(\w+) = "(.*)"$', block, re.M))
    if "source" in field and field["source"] != SOURCE:
        problems.append(f"{field['name']} comes from {field['source']}, only crates.io is allowed")
    if field["version"].startswith(BANNED.get(field["name"], "never")):
        problems.append(f"{field['name']} {field['version']} is banned")
for name, spec in re.findall(r"^([\w-]+) = (.*)$", (root / "Cargo.toml").read_text().split("[workspace.dependencies]")[1].split("\n[")[0], re.M):
    if "path" not in spec and '"=' not in spec:
        problems.append(f"{name} is not pinned: {spec}")
metadata = json.loads(subprocess.run(["cargo", "metadata", "--format-version", "1", "--locked"], cwd=root, check=True, capture_output=True).stdout)


def allowed(expression):
    """Whether one alternative of a licence expression is wholly on the list."""
    expression = expression.replace("/", " OR ").replace("(", " ").replace(")", " ")
    return any(all(part.strip() in LICENCES for part in alternative.split(" AND ")) for alternative in expression.split(" OR "))


for package in metadata["packages"]:
    licence = package["license"] or ""
    if package["source"] and not allowed(licence) and EXCEPTIONS.get(package["name"]) != licence:
        problems.append(f"{package['name']} {package['version']} has licence {licence!r}, which is not on the list")
for problem in problems:
    print(problem, file=sys.stderr)
print(f"lock file: {len(metadata['packages'])} packages, {len(problems)} problems")
sys.exit(1 if problems else 0)
