#!/bin/bash
# musl-root.sh FOLDER: below FOLDER one program, /agent, which copies its input to its output, and the musl that it is linked
# against; nothing is installed on this machine.
set -euo pipefail
shopt -s inherit_errexit
root=${1:?musl-root.sh FOLDER}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"   # apt drops its rights to fetch
cd "$work"
apt-get download -q musl musl-dev >/dev/null 2>&1 || { apt-get update -q >/dev/null && apt-get download -q musl musl-dev >/dev/null; }
for archive in *.deb; do dpkg-deb -x "$archive" .; done
cat >agent.c <<'C'
#include <stdio.h>

int main(void) {
  int byte;
  while ((byte = getchar()) != EOF) putchar(byte);
  return 0;
}
C
loader=$(cd lib && echo ld-musl-*.so.1)
libraries=$(echo usr/lib/*-linux-musl)
mkdir -p "$root/lib"
cp -L "lib/$loader" "$root/lib/$loader"
ln -s "$root/lib/$loader" libc.so   # libc.so is the loader itself
gcc -O2 -no-pie -nostdinc -nostdlib -isystem usr/include/*-linux-musl -Wl,-dynamic-linker,"/lib/$loader" -o "$root/agent" \
  "$libraries"/crt1.o "$libraries"/crti.o agent.c -L. -l:libc.so "$libraries"/crtn.o
