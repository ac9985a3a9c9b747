# What scripts share that run programs in other languages. They set `root`, the repository's folder, and source this file.
# shellcheck shell=sh disable=SC2154

target=${CARGO_TARGET_DIR:-target}
case $target in /*) ;; *) target=$root/$target ;; esac

# Ends with status 77, by which a test knows that the language's tools are missing.
missing() {
    echo "missing: $*"
    exit 77
}

need() {
    command -v "$1" >/dev/null || missing "$1"
}

# Takes `folder`, $1 within the target folder, for what the program needs. One process at a time: two that install would write the
# same files.
take_folder() {
    folder=$target/$1
    mkdir -p "$folder"
    exec 9>"$folder/.lock"
    if command -v flock >/dev/null; then flock 9; fi
}

# Replaces this shell by the program, which does not keep the folder.
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

# The URL of a database in words that every language's driver understands.
use_database() {
    : "${DATABASE_URL:?set it to a database on which Sexton\'s migrations have been applied}"
    export DATABASE_URL="postgresql://${DATABASE_URL#*://}"
}

# The packages of the requirements $1, and the modules of the folder $2.
use_python() {
    need python3
    wanted=$(cat "$1")
    if outdated "$wanted" installed; then
        python3 -m pip --version >/dev/null 2>&1 || missing 'pip for Python 3'
        rm -rf "$folder/packages"
        python3 -m pip install --quiet --disable-pip-version-check --no-input --target "$folder/packages" -r "$1" >&2
        did "$wanted" installed
    fi
    export PYTHONPATH="$folder/packages${2:+:$2}" PYTHONDONTWRITEBYTECODE=1
}

# The packages of the folder $1, in `folder`.
use_node() {
    need node
    need npm
    wanted=$(cat "$1/package-lock.json")
    if outdated "$wanted" installed; then
        cp "$1/package.json" "$1/package-lock.json" "$folder"
        (cd "$folder" && npm ci --no-audit --no-fund --ignore-scripts >&2)
        did "$wanted" installed
    fi
}

download_packages() {
    # shellcheck disable=SC2086 # Each word is a package.
    (cd "$folder/debs" && apt-get download -qq $1 >&2)
}

# Once more with the lists of packages of today, which only root may fetch, and one process at a time.
download_all() {
    for pause in 0 10; do
        download_packages "$1" && return
        sleep "$pause"
        apt-get update -qq >&2 || true
    done
    download_packages "$1"
}

# Unpacks Debian's packages $1 into `$folder/packages`, without installing them. $2 says what they are for.
use_packages() {
    if [ -d "$folder/packages" ] && ! outdated "$1" unpacked; then return 0; fi
    { command -v apt-get && command -v dpkg-deb; } >/dev/null || missing "$2: apt-get and dpkg-deb"
    rm -rf "$folder/debs" "$folder/packages"
    mkdir -p "$folder/debs"
    download_all "$1" || missing "$2, as packages of Debian 12"
    for package in "$folder"/debs/*.deb; do dpkg-deb -x "$package" "$folder/packages"; done
    did "$1" unpacked
}
