#!/bin/bash
# debian-root.sh FOLDER: Debian's bash, coreutils, git and the libraries they need, unpacked below FOLDER; nothing is installed on this machine.
set -euo pipefail
shopt -s inherit_errexit
root=${1:?debian-root.sh FOLDER}
packages=(base-files libc6 libtinfo6 libselinux1 libpcre2-8-0 libacl1 libattr1 libgmp10 libssl3 zlib1g bash coreutils git)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"   # apt drops its rights to fetch
cd "$work"
apt-get download -q "${packages[@]}" >/dev/null 2>&1 || { apt-get update -q >/dev/null && apt-get download -q "${packages[@]}" >/dev/null; }
for archive in *.deb; do
  dpkg-deb --fsys-tarfile "$archive" | tar -x -C "$root" --keep-directory-symlink --no-same-owner
done
rm -rf "$root"/usr/share/{doc,man,info,lintian,locale} "$root"/var/{run,lock} "$root"/dev
ln -sf bash "$root/usr/bin/sh"
# /root belongs to root alone, as in Debian's own image.
mkdir -p "$root/root"
