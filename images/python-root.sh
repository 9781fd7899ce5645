#!/bin/bash
# python-root.sh FOLDER: Debian's python3 and what it needs, unpacked below FOLDER; nothing is installed on this machine.
set -euo pipefail
shopt -s inherit_errexit
root=${1:?python-root.sh FOLDER}

# Python's own packages and the libraries below them, without what only an installation needs (dpkg, debconf, perl).
needed() {
  apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances python3 |
    grep -E '^(python3|lib|zlib1g|media-types|tzdata)' | grep -vE '^lib(perl|debconf|selinux|pam|semanage)' | sort -u
}

# A machine whose lists of packages were removed knows nothing of them.
packages=$(needed || true)
if [[ -z $packages ]]; then
  apt-get update -q >/dev/null
  packages=$(needed)
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"   # apt drops its rights to fetch
cd "$work"
# shellcheck disable=SC2086  # one argument each
apt-get download -q $packages >/dev/null 2>&1 || { apt-get update -q >/dev/null && apt-get download -q $packages >/dev/null; }
for archive in *.deb; do
  dpkg-deb --fsys-tarfile "$archive" | tar -x -C "$root" --keep-directory-symlink --no-same-owner
done
rm -rf "$root"/usr/share/{doc,man,lintian,locale,python3/debpython} "$root"/usr/lib/python3*/{test,idlelib,tkinter,ensurepip}
