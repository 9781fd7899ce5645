#!/bin/bash
# Compiles what the node image is made of from the Go module proxy: Kubernetes, etcd, CoreDNS, kind,
# kube-router for NetworkPolicies, and the pause program.
# `binaries.sh kind` makes kind alone, all that is needed where images can be pulled. Prints the folder.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

out=$(binaries)
mkdir -p "$out"
export CGO_ENABLED=0 GOFLAGS=-buildvcs=false GOBIN=$out
stripped='-s -w'

command -v go >/dev/null || die "Go is needed to compile Kubernetes: install it and put it on PATH"

if [[ ! -x $out/kind ]]; then
  say "compiling kind $KIND_VERSION"
  go install -trimpath -ldflags "$stripped" "sigs.k8s.io/kind@$KIND_VERSION" >&2
fi
if [[ ${1:-all} != kind && ! -e $out/complete ]]; then
  say "compiling Kubernetes $KUBERNETES_VERSION and its companions (minutes the first time, then cached)"
  go install -trimpath -ldflags "$stripped" "github.com/coredns/coredns@$COREDNS_VERSION" >&2
  (cd "$here/$etcd_module" && go build -trimpath -ldflags "$stripped" -o "$out/etcd" go.etcd.io/etcd/server/v3) >&2
  (cd "$here/network" && go build -trimpath -ldflags "$stripped" -o "$out/" tool) >&2
  # Without these the commands call themselves v0.0.0 and kubeadm refuses them.
  stamp=k8s.io/component-base/version
  IFS=. read -r major minor _ <<<"${KUBERNETES_VERSION#v}"
  (cd "$here/$kubernetes_module" && go build -trimpath -o "$out/" \
    -ldflags "$stripped -X $stamp.gitVersion=$KUBERNETES_VERSION -X $stamp.gitMajor=$major -X $stamp.gitMinor=$minor" tool) >&2
  gcc -static -O2 -Wall -o "$out/pause" "$here/node/pause.c"
  touch "$out/complete"
fi
printf '%s\n' "$out"
