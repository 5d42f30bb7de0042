#!/usr/bin/env bash
# Tests demo.sh and test.sh (or the scripts given) on a system that has nothing: do they find or install all that they
# need? Run it by hand, as root. It makes a minimal Debian 12 with debootstrap in a temporary folder. It runs each
# script in a fresh copy of it, with a fresh clone of this repository (so changes that are not committed are not
# tested), and prints its last lines. At the end it unmounts and removes everything. Exit status: 0 all ran well, 1
# one did not, 2 nothing was run. Needs a network and some gigabytes.
# Usage: tests/e2e/bare_debian.sh [FOLDER FOR TEMPORARY FILES [SCRIPT...]]
set -u
suite=bookworm
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
repository=$(cd "$(dirname "$0")/../.." && pwd)

refuse() {
    echo "bare_debian.sh: $1" >&2
    exit 2
}

parent=${1:-${TMPDIR:-/tmp}}
shift $(($# > 0))
[ $# -gt 0 ] || set -- demo.sh test.sh
[ -d "$parent" ] || refuse "$parent: no such folder"
parent=$(cd "$parent" && pwd)
[ "$(id -u)" = 0 ] || refuse "has to be root: debootstrap, mount and chroot are for root only"
for program in debootstrap git; do
    command -v $program >/dev/null 2>&1 || refuse "no $program here; on Debian: apt-get install $program"
done
work=$(mktemp -d "$parent/qat-debian.XXXXXX") || refuse "$parent: cannot make a folder there"

# The machine's own /dev is mounted in there: nothing is removed before it is out again.
leave() {
    for mounted in "$work"/*/{proc,sys,dev}; do
        if mountpoint -q "$mounted" && ! umount "$mounted"; then
            echo "bare_debian.sh: $mounted is still mounted; umount it, then remove $work" >&2
            return
        fi
    done
    rm -rf --one-file-system "$work"
}
trap leave EXIT
trap 'exit 1' INT TERM HUP

fresh() { # fresh <root>: a copy of the bare system, with a clone of the repository
    cp -a "$work/bare" "$1" &&
        git clone --quiet --no-hardlinks "$repository" "$1/qat" &&
        cp -L --remove-destination /etc/resolv.conf "$1/etc/resolv.conf" &&
        mount -t proc proc "$1/proc" &&
        mount --bind /dev "$1/dev"
}

inside() { # inside <root> <script>: with no variable of ours but the proxies
    chroot "$1" /usr/bin/env -i HOME=/root LC_ALL=C \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        ${http_proxy:+"http_proxy=$http_proxy"} ${https_proxy:+"https_proxy=$https_proxy"} \
        /bin/sh -c "cd /qat && ./$2"
}

try() { # try <script>
    root=$work/${1%.sh}
    fresh "$root" || exit 1
    begin=$(date +%s)
    inside "$root" "$1" >"$root.log" 2>&1
    status=$?
    if [ $status != 0 ]; then # keep what failed: the folder goes
        cp "$root.log" "$parent/${1%.sh}.log"
        echo "== $parent/${1%.sh}.log has all of it; what failed there:"
        grep -E '^not ok |:[FE]:|FAIL |TIMEOUT|ERROR' "$root.log" | sort -u | head -n 40
    fi
    tail -n 12 "$root.log"
    echo "== ./$1 on a bare Debian $suite: exit status $status, $(($(date +%s) - begin)) s"
    [ $status = 0 ] || failed=1
}

echo "== debootstrap --variant=minbase $suite"
debootstrap --variant=minbase "$suite" "$work/bare" "$mirror" >"$work/bare.log" 2>&1 || {
    tail -n 20 "$work/bare.log"
    exit 1
}
failed=0
for script in "$@"; do try "$script"; done
exit $failed
