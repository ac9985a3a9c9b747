#!/bin/sh
# Runs the example service of one language on the database of DATABASE_URL, which has Sexton's migrations, the table of
# orders/orders.sql and the job of orders/jobs.toml. Installs what the service needs into the target folder, builds it
# there, and becomes the service, which prints "running on http://…" when it listens on PORT (8000; 0: a free one). Exits
# with status 77 and a line that begins with "missing:" if the language's tools are missing.
#
#   DATABASE_URL=postgresql://user@host/database examples/serve.sh python|typescript|java
set -eu
# Not the working directory: that stays the caller's.
root=$(cd "$(dirname "$0")/.." && pwd)
target=${CARGO_TARGET_DIR:-target}
case $target in /*) ;; *) target=$root/$target ;; esac
export PORT="${PORT:-8000}"

missing() {
    echo "missing: $*"
    exit 77
}

need() {
    command -v "$1" >/dev/null || missing "$1"
}

# Replaces this shell by the service, which does not hold the lock.
become() {
    exec 9>&-
    exec "$@"
}

# Whether the text $1 differs from the one for which the step $2 was done last.
outdated() {
    [ "$1" != "$(cat "$folder/.$2" 2>/dev/null)" ]
}

# The step $2 is done for the text $1.
did() {
    printf '%s\n' "$1" >"$folder/.$2"
}

# A text that changes with the files of these folders.
sources() {
    find "$@" -type f -not -path '*/node_modules/*' -not -path '*/dist*/*' -exec cksum {} + | sort
}

python() {
    need python3
    wanted=$(cat "$root/examples/python/requirements.txt")
    if outdated "$wanted" installed; then
        python3 -m pip --version >/dev/null 2>&1 || missing 'pip for Python 3'
        rm -rf "$folder/packages"
        python3 -m pip install --quiet --disable-pip-version-check --no-input --target "$folder/packages" \
            -r "$root/examples/python/requirements.txt" >&2
        did "$wanted" installed
    fi
    export PYTHONPATH="$folder/packages:$root/client/python/src" PYTHONDONTWRITEBYTECODE=1
    become python3 -m uvicorn --app-dir "$root/examples/python" --port "$PORT" app:app
}

typescript() {
    need node
    need npm
    # Copies, so that nothing is installed or built among the sources.
    service=$folder/examples/typescript
    client=$folder/client/typescript
    wanted=$(sources "$root/examples/typescript" "$root/client/typescript")
    if outdated "$wanted" built; then
        mkdir -p "$service" "$client"
        rm -rf "$service/dist" "$client/dist" "$client/src"
        cp -R "$root/client/typescript/src" "$client"
        for file in package.json tsconfig.json; do cp "$root/client/typescript/$file" "$client"; done
        for file in app.ts package.json package-lock.json tsconfig.json; do cp "$root/examples/typescript/$file" "$service"; done
        lock=$(cat "$service/package-lock.json")
        if outdated "$lock" installed; then
            (cd "$service" && npm ci --no-audit --no-fund --ignore-scripts >&2)
            did "$lock" installed
        fi
        (cd "$service" && npm run --silent build >&2)
        did "$wanted" built
    fi
    become node "$service/dist/app.js"
}

# Debian's packages with what the service needs, which need not be installed; their versions are those of pom.xml.
jars='libpostgresql-jdbc-java=42.5.5* libjackson2-databind-java=2.14.0* libjackson2-core-java=2.14.*
libjackson2-annotations-java=2.14.0* libspring-jdbc-java=4.3.30* libspring-core-java=4.3.30* libspring-beans-java=4.3.30*
libspring-transaction-java=4.3.30* libspring-aop-java=4.3.30* libspring-context-java=4.3.30*
libspring-expression-java=4.3.30* libspring-web-java=4.3.30* libspring-web-servlet-java=4.3.30*
libcommons-logging-java=1.2* libservlet-api-java=4.0* libjetty9-java=9.4.57*'

download() {
    # shellcheck disable=SC2086 # Each word is a package.
    (cd "$folder/debs" && apt-get download -qq $jars >&2)
}

# Once more with the lists of packages of today, which only root may fetch, and one process at a time.
download_all() {
    for pause in 0 10; do
        download && return
        sleep "$pause"
        apt-get update -qq >&2 || true
    done
    download
}

java() {
    need javac
    if outdated "$jars" installed; then
        { command -v apt-get && command -v dpkg-deb; } >/dev/null || missing 'the jars of pom.xml: apt-get and dpkg-deb'
        rm -rf "$folder/debs" "$folder/jars"
        mkdir -p "$folder/debs"
        download_all || missing 'the jars of pom.xml, as packages of Debian 12'
        for package in "$folder"/debs/*.deb; do dpkg-deb -x "$package" "$folder/jars"; done
        did "$jars" installed
    fi
    wanted=$(sources "$root/examples/java/src" "$root/client/java/src/main")
    if outdated "$wanted" built; then
        rm -rf "$folder/classes"
        javac --release 17 -d "$folder/classes" -cp "$folder/jars/usr/share/java/*" \
            "$root"/client/java/src/main/java/dev/sexton/client/*.java "$root"/examples/java/src/main/java/shop/*.java >&2
        did "$wanted" built
    fi
    become java -cp "$folder/classes:$folder/jars/usr/share/java/*" shop.Application
}

case ${1:-} in
python | typescript | java)
    : "${DATABASE_URL:?set it to a database on which Sexton\'s migrations have been applied}"
    # The longer of the two names is understood everywhere.
    export DATABASE_URL="postgresql://${DATABASE_URL#*://}"
    folder=$target/examples/$1
    mkdir -p "$folder"
    # Two that install at a time would write the same files.
    exec 9>"$folder/.lock"
    if command -v flock >/dev/null; then flock 9; fi
    "$1"
    ;;
*)
    echo "usage: $0 python|typescript|java" >&2
    exit 2
    ;;
esac
