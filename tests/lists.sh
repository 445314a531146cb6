#!/bin/sh
# The workspace's lists of tests, each a program that cargo makes:
# lists.sh build FILE                     builds all, and writes a line for each list into FILE: its directory, its name, the program
# lists.sh play ROOM DIRECTORY NAME PROGRAM [ONLY]
#                                         runs a list, or of it the names that the file ONLY has, says in a line how it went, and leaves in ROOM
#                                         what it said, and as *.tests what became of each test
# lists.sh names PROGRAM [--ignored]       the names of a list's tests, or of those that cannot run here
# lists.sh skip ROOM DIRECTORY NAME PROGRAM
#                                         leaves in ROOM that each test of the list is left out
# lists.sh total ROOM ...                 what became of all of them, in one line: a test that was left out here and run there is run
# lists.sh left ROOM ...                  the tests that were left out everywhere
# What a list needs to know besides (NHA_RELEASE and the like, tests/src/trials.rs) is in the environment.
set -eu
tests=$(cd "$(dirname "$0")" && pwd)

build() {
    # All in one: cargo would build programs alone with other features of what they share with the tests, and all of it twice.
    "${CARGO:-cargo}" build --locked --workspace --bins --tests
    "${CARGO:-cargo}" test --locked --workspace --no-run --quiet --message-format=json |
        sed -n 's|.*"manifest_path":"\([^"]*\)/Cargo.toml".*"name":"\([^"]*\)".*"test":true},"features".*"executable":"\([^"]*\)".*|\1 \2 \3|p' >"$1"
    [ -s "$1" ]
}

# The harness that knows a reason puts it before the name.
names() { "$1" --list ${2:+"$2"} | sed -n 's/^\(\[.*\] \)\{0,1\}\(.*\): test$/\2/p'; }

# label DIRECTORY NAME: what people read.
label() { echo "${1#"${tests%/*}/"} $2"; }

skip() {
    said=$(mktemp "$1/XXXXXX")
    names "$4" | sed "s|^|out\t$(label "$2" "$3")\t|" >"$said.tests"
}

# Both harnesses say "test NAME ... ok"; the one that knows a reason puts it before the name. Rust's own cannot leave a test out while it
# runs: the file of names says which did nothing.
became() {
    LC_ALL=C awk -v list="$1" -v file="$2" '
        BEGIN { while ((getline name < file) > 0) is_out[name] }
        /^test / && match($0, / \.\.\. (ok|FAILED|ignored)/) {
            word = substr($0, RSTART + 5, 2); name = substr($0, 6, RSTART - 6)
            sub(/^\[.*\] /, "", name); sub(/ +$/, "", name)
            print (word == "ok" ? (name in is_out ? "out" : "passed") : word == "FA" ? "failed" : "out") "\t" list "\t" name
        }'
}

play() {
    room=$1 directory=$2 name=$3 program=$4 only=${5:-} result=0 begun=$(date +%s)
    list=$(label "$directory" "$name")
    said=$(mktemp "$room/XXXXXX")
    shift "$#"
    # Rust's own harness takes names as words.
    # shellcheck disable=SC2046 # names have no spaces
    [ -z "$only" ] || [ "$list" = 'tests it' ] || set -- --exact $(cat "$only")
    # What programs of a test say goes elsewhere: it would stand in the lines of the harness.
    (cd "$directory" && export NHA_LEFT_OUT="$said.out" && { [ -z "$only" ] || export NHA_ONLY="$only"; } && exec "$program" "$@") \
        >"$said" 2>"$said.errors" </dev/null || result=$?
    became "$list" "$said.out" <"$said" >"$said.new"
    # A program that dies has tests that nobody heard of.
    [ "$result" = 0 ] || grep -q '^failed' "$said.new" || printf 'failed\t%s\tthe list itself, with exit code %s\n' "$list" "$result" >>"$said.new"
    mv "$said.new" "$said.tests"
    what="$list${NHA_SCENARIOS:+, $NHA_SCENARIOS}${NHA_PART:+, part $NHA_PART}${NHA_RELEASE:+, Pacemaker of $NHA_RELEASE}"
    echo "$what: $(sum "$said.tests"), $(($(date +%s) - begun)) s"
    [ "$result" = 0 ] || LC_ALL=C awk '/^---- .* ----$/ { is_told = 1 } /^failures:$|^test result: / { is_told = 0 } is_told' "$said"
    [ "$result" = 0 ] || tail -n 40 "$said.errors"
    return "$result"
}

# The tests of *.tests files, each with what became of it in the end.
end() {
    LC_ALL=C awk -F '\t' '
        $1 == "out" && !($2 FS $3 in became) || $1 == "passed" && became[$2 FS $3] != "failed" || $1 == "failed" { became[$2 FS $3] = $1 }
        END { for (test in became) print became[test] FS test }' "$@"
}

sum() {
    end "$@" | awk '{ count[$1]++ } END { printf "%d passed, %d failed, %d left out", count["passed"], count["failed"], count["out"] }'
}

# Each ROOM as its files.
files() { find "$@" -name '*.tests'; }

# shellcheck disable=SC2046 # names without spaces
total() { sum $(files "$@"); }

# shellcheck disable=SC2046 # names without spaces
left() { end $(files "$@") | sed -n 's/^out\t/left out: /p' | tr '\t' ' ' | sort; }

"$@"
