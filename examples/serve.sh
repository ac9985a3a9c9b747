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
. "$root/scripts/languages.sh"
export PORT="${PORT:-8000}"

# A text that changes with the files of these folders.
sources() {
    find "$@" -type f -not -path '*/node_modules/*' -not -path '*/dist*/*' -exec cksum {} + | sort
}

python() {
    use_python "$root/examples/python/requirements.txt" "$root/client/python/src"
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

java() {
    need javac
    use_packages "$jars" 'the jars of pom.xml'
    wanted=$(sources "$root/examples/java/src" "$root/client/java/src/main")
    if outdated "$wanted" built; then
        rm -rf "$folder/classes"
        javac --release 17 -d "$folder/classes" -cp "$folder/packages/usr/share/java/*" \
            "$root"/client/java/src/main/java/dev/sexton/client/*.java "$root"/examples/java/src/main/java/shop/*.java >&2
        did "$wanted" built
    fi
    become java -cp "$folder/classes:$folder/packages/usr/share/java/*" shop.Application
}

case ${1:-} in
python | typescript | java)
    use_database
    take_folder "examples/$1"
    "$1"
    ;;
*)
    echo "usage: $0 python|typescript|java" >&2
    exit 2
    ;;
esac
