# shellcheck shell=bash
# Paths, names and small helpers of the cluster scripts; sourced by each of them.
set -euo pipefail
shopt -s inherit_errexit

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
checkout=$(cd "$here/../.." && pwd)
# shellcheck source=versions.env
source "$here/versions.env"

# Folder of built files, outside the checkout, so that a fresh clone finds them again.
cache=${BERTH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/berth}/cluster
cluster=${CLUSTER:-berth}
state=$cache/clusters/$cluster   # files of one cluster: kubeconfig, env
engine=$cache/engine             # files of Berth's own Docker engine: data, socket, log
engine_socket=unix://$engine/docker.sock
node=$checkout/node_modules/node/bin/node

say() { printf '%s\n' "cluster: $*" >&2; }
die() { say "$*"; exit 1; }

# KUBERNETES=oldest takes the oldest supported Kubernetes and its etcd, which are pinned below `oldest`.
release=${KUBERNETES:-}
[[ -z $release || $release == oldest ]] || die "KUBERNETES is oldest or empty, not $release"
kubernetes_module=${release:+$release/}kubernetes
etcd_module=${release:+$release/}etcd
KUBERNETES_VERSION=$(awk '$1 == "k8s.io/kubernetes" { print $2 }' "$here/$kubernetes_module/go.mod")

# digest_of FILE…: one short name for the content of files and for the compiler, the "address" of what is built from them.
digest_of() { { go env GOVERSION GOARCH; cd "$here" && sha256sum -- "$@"; } | sha256sum | cut -c1-12; }
binaries_key() { digest_of versions.env binaries.sh node/pause.c {"$kubernetes_module","$etcd_module",network}/go.{mod,sum}; }
node_key() { { binaries_key; cd "$here" && digest_of node-image.sh ../../images/{layer,archive,pack}.ts node/*; } | sha256sum | cut -c1-12; }
binaries() { printf '%s' "$cache/bin-$(binaries_key)"; }
node_image() { printf '%s' "berth/node${release:+-$release}:$KUBERNETES_VERSION-$(node_key)"; }

# wait_until SECONDS WHAT COMMAND…: polls every 100 ms.
wait_until() {
  local tries=$(($1 * 10)) what=$2
  shift 2
  while ! "$@" >/dev/null 2>&1; do
    ((tries-- > 0)) || die "gave up waiting for $what"
    sleep 0.1
  done
}

# again COMMAND…: runs COMMAND up to three times, because a network or a busy machine can make it fail once.
again() {
  local tries=3
  until "$@"; do
    ((--tries > 0)) || return 1
    say "once more: $1 failed"
    sleep 5
  done
}

# install_packages PACKAGE…: Debian packages that are missing, with no question asked and no service started by them.
install_packages() {
  local missing=() package policy=/usr/sbin/policy-rc.d
  for package in "$@"; do dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q ' installed$' || missing+=("$package"); done
  ((${#missing[@]})) || return 0
  [[ $EUID == 0 ]] || die "these packages are missing and only root can install them: ${missing[*]}"
  say "installing ${missing[*]}"
  if [[ ! -e $policy ]]; then
    printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy
    trap 'rm -f /usr/sbin/policy-rc.d' RETURN
  fi
  # Retried, because another apt may be running, for example on a machine that has just started.
  again apt-get update -q >/dev/null
  DEBIAN_FRONTEND=noninteractive again apt-get -o DPkg::Lock::Timeout=300 install -yq --no-install-recommends "${missing[@]}" >/dev/null
}
