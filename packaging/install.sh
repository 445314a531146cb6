#!/bin/sh
# Installs the files of packaging/files below $DESTDIR, for the packages and for `make install`; $1 has the built programs.
# It starts and enables nothing.
set -eu
cd "$(dirname "$0")/.."
built=$1
to=${DESTDIR:-}
units=${UNITS:-/lib/systemd/system}
zsh=${ZSH:-/usr/share/zsh/vendor-completions}
docs=${DOCS:-/usr/share/doc/nova-host-alerter}

# A path of the list, with the names between @ filled in.
filled() { echo "$1" | sed "s|@built@|$built|; s|@units@|$units|; s|@zsh@|$zsh|; s|@docs@|$docs|"; }

# place MODE TO FILE: TO is a directory if it ends with a slash.
place() {
    case $2 in
    */) set -- "$1" "$2${3##*/}" "$3" ;;
    esac
    install -D -m "$1" "$3" "$to$2"
}

# tree TO DIRECTORY
tree() {
    find "$2" -type f | LC_ALL=C sort | while read -r file; do
        mode=644
        [ ! -x "$file" ] || mode=755
        place "$mode" "$1${file#"$2"/}" "$file"
    done
}

# An administrator's configuration is not overwritten; a package build has none.
is_kept() { [ -z "$to" ] && case $1 in /etc/*) [ -e "$1${2##*/}" ] ;; *) false ;; esac; }

while read -r mode where from; do
    case $mode in '' | '#'*) continue ;; esac
    where=$(filled "$where") from=$(filled "$from")
    for file in $from; do
        if [ "$mode" = tree ]; then tree "$where" "$file" && continue; fi
        if [ ! -e "$file" ]; then
            case $mode in *'?') continue ;; esac
            echo "install: $file is not here" >&2
            exit 1
        fi
        is_kept "$where" "$file" || place "${mode%'?'}" "$where" "$file"
    done
done <packaging/files
