#!/bin/sh
# Writes shared/model/src/lock_key/formula/vectors.json anew: keys of advisory locks that the original libraries compute, each
# for the same names. Needs Python 3, Node.js with npm, a JDK, psql, and a DATABASE_URL for what PostgreSQL itself computes; the
# registries of Python and npm must be reachable. To be run after a library has changed its formula, and read afterwards: a key
# that changes is a new formula, never a correction.
#
# Not run but computed by what they call: Ruby's with_advisory_lock (zlib's CRC-32), and Spring Integration (the JDK's UUID).
# pg-advisory-lock of npm is read at the commit of its formula, from PG_ADVISORY_LOCK_REPOSITORY.
set -eu
cd "$(dirname "$0")/.."
out=$PWD/shared/model/src/lock_key/formula/vectors.json
repository=${PG_ADVISORY_LOCK_REPOSITORY:-https://github.com/IlyaSemenov/pg-advisory-lock}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

python3 -m venv "$scratch/old"
python3 -m venv "$scratch/new"
"$scratch/old/bin/pip" install -q 'django-pglocks<2' six django django-pglock 'psycopg[binary]'
"$scratch/new/bin/pip" install -q django-pgware
(cd "$scratch" && npm install --silent --no-audit --no-fund --ignore-scripts advisory-lock@2 typescript@5)
# The last commit of version 1.
git clone -q --no-checkout "$repository" "$scratch/pg-advisory-lock"
git -C "$scratch/pg-advisory-lock" show 582b3a8~1:src/key.ts > "$scratch/key.ts"

cat > "$scratch/names.json" <<'NAMES'
["", "a", "nightly", "db:migrate", "billing.monthlyInvoices", "Straße 7", "ключ", "😀 lock", "O'Brien /* x */",
 "polygenelubricants", "0199aabb-cc00-7000-8000-0000000000af", "1-2-3-4-5",
 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"]
NAMES

cat > "$scratch/old.py" <<'PYTHON'
import json, sys, warnings, zlib
warnings.simplefilter("ignore")
from importlib.metadata import version
from django.conf import settings
settings.configure()
import django.db, django_pglocks, pglock.core

class Cursor:
    def execute(self, sql): self.sql = sql
    def fetchone(self): return [True]
    def close(self): pass

class Connections:
    def __getitem__(self, name): return self
    def __init__(self): self.one = Cursor()
    def cursor(self): return self.one

django.db.connections = connections = Connections()
found = []
for name in json.load(open(sys.argv[1])):
    with django_pglocks.advisory_lock(name, wait=False):
        key = connections.one.sql.split("(")[1].split(")")[0]
    found.append(["django-pglocks", name, None, key])
    found.append(["django-pglock", name, None, str(pglock.core._cast_lock_id(name))])
    for prefix in [None, "7"]:
        pair = f"{zlib.crc32(name.encode()) & 0x7fffffff}, {int(prefix or 0)}"
        found.append(["with-advisory-lock", name, prefix, pair])
made_by = {f"PyPI {package}": version(package) for package in ["django-pglocks", "django-pglock"]}
made_by["zlib for with_advisory_lock"] = zlib.ZLIB_RUNTIME_VERSION
json.dump({"made_by": made_by, "found": found}, sys.stdout)
PYTHON

cat > "$scratch/new.py" <<'PYTHON'
import json, sys
from importlib.metadata import version
from django_pg_utils.locks._lock import resolve_lock_id
found = [["django-pgware", name, None, str(resolve_lock_id(name))] for name in json.load(open(sys.argv[1]))]
json.dump({"made_by": {"PyPI django-pgware": version("django-pgware")}, "found": found}, sys.stdout)
PYTHON

cat > "$scratch/keys.cjs" <<'NODE'
const fs = require("fs")
const ts = require("typescript")
const { strToKey } = require("advisory-lock")
const source = ts.transpileModule(fs.readFileSync("key.ts", "utf8"), { compilerOptions: { module: "commonjs" } })
const version1 = {}
new Function("exports", source.outputText)(version1)
const number = (text) => {
  let hash = 0
  for (let i = 0; i < text.length; i++) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0
  return Math.abs(hash)
}
const found = []
for (const name of JSON.parse(fs.readFileSync("names.json", "utf8"))) {
  found.push(["advisory-lock", name, null, strToKey(name).join(", ")])
  found.push(["pg-advisory-lock-1", name, null, String(version1.createAdvisoryLockKey(name))])
  found.push(["article", name, null, String(number(name))])
  if (number(name) < 2 ** 31) found.push(["article", name, "billing", `${number("billing")}, ${number(name)}`])
}
// Published by the library's own test of version 3.
found.push(["pg-advisory-lock", "db:migrate", null, "3385325551285341936"])
const version = require("advisory-lock/package.json").version
const made_by = { "npm advisory-lock": version, "pg-advisory-lock": "1.4.0 (582b3a8~1), 3 (its test)", "Node.js": process.version }
console.log(JSON.stringify({ made_by, found }))
NODE

cat > "$scratch/Keys.java" <<'JAVA'
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;

class Keys {
    static String uuid(String name) {
        try {
            return UUID.fromString(name).toString();
        } catch (IllegalArgumentException none) {
            return UUID.nameUUIDFromBytes(name.getBytes(StandardCharsets.UTF_8)).toString();
        }
    }

    public static void main(String[] arguments) throws Exception {
        List<String> lines = new ArrayList<>();
        for (String name : Files.readAllLines(Path.of(arguments[0]))) {
            lines.add(name.hashCode() + "\t" + uuid(name));
        }
        Files.write(Path.of(arguments[1]), lines);
    }
}
JAVA

cd "$scratch"
old/bin/python old.py names.json > old.json
new/bin/python new.py names.json > new.json
node keys.cjs > node.json
python3 -c 'import json; print("\n".join(json.load(open("names.json"))))' > names.txt
java Keys.java names.txt java.txt

python3 - "$out" <<'PYTHON'
import json, os, subprocess, sys
names = json.load(open("names.json"))
parts = [json.load(open(file)) for file in ["old.json", "new.json", "node.json"]]
made_by = {program: version for part in parts for program, version in part["made_by"].items()}
found = [one for part in parts for one in part["found"]]
for name, line in zip(names, open("java.txt").read().splitlines()):
    key, uuid = line.split("\t")
    found += [["java-hashcode", name, None, key], ["spring-integration", name, None, f"INT_LOCK {uuid}"]]
made_by["JDK for java-hashcode and spring-integration"] = subprocess.run(
    ["java", "--version"], capture_output=True, text=True).stdout.split("\n")[0]

def ask(expression, *texts):
    # As psql's own variables, which it quotes.
    given = [part for n, text in enumerate(texts) for part in ["-v", f"t{n}={text}"]]
    return subprocess.run(["psql", "-XAtq", *given, os.environ["DATABASE_URL"]], input=f"SELECT {expression};",
                          capture_output=True, text=True, check=True).stdout.strip()

md5 = "('x' || substr(md5(:'t1' || '-' || :'t0'), 1, 16))::bit(64)::bigint"
extended = "hashtextextended(:'t0' COLLATE \"C\", {})"
for name in names:
    found.append(["hashtext", name, None, ask("hashtext(:'t0')", name)])
    found.append(["hashtextextended", name, None, ask(extended.format(0), name)])
    seed = "hashtextextended(:'t1' COLLATE \"C\", 0)"
    found.append(["hashtextextended", name, "billing", ask(extended.format(seed), name, "billing")])
    found.append(["good-job", name, None, ask(md5, name, "good_jobs")])
    found.append(["good-job", name, "my_jobs", ask(md5, name, "my_jobs")])
made_by["PostgreSQL for hashtext, hashtextextended and good-job"] = ask("current_setting('server_version')")
rows = []
for formula, name, namespace, key in found:
    row = {"formula": formula, "name": name, "key": key}
    if namespace is not None:
        row["namespace"] = namespace
    rows.append("    " + json.dumps(row, ensure_ascii=False))
with open(sys.argv[1], "w") as file:
    file.write('{\n  "made_by": ' + json.dumps(made_by, indent=4).replace("\n}", "\n  }"))
    file.write(',\n  "vectors": [\n' + ",\n".join(rows) + "\n  ]\n}\n")
print(f"{len(rows)} keys")
PYTHON
