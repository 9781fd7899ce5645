#!/bin/bash
# Makes kind's node image without a registry: a small Debian, kind's own files for its base image (they are in kind's Go module),
# our Kubernetes binaries, and the images that Kubernetes runs, already inside the node's containerd.
# Needs an engine (DOCKER_HOST) to import into. Prints the image's name.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

image=$(node_image)
if docker image inspect "$image" >/dev/null 2>&1; then
  printf '%s\n' "$image"
  exit 0
fi
[[ $EUID == 0 ]] || die "only root can make the node image"
[[ -x $node ]] || die "run npm ci first: $node is missing"
install_packages debootstrap busybox-static
binaries=$("$here/binaries.sh")

work=$cache/node-image.work
root=$work/root
containerd=
cleanup() {
  if [[ -n $containerd ]]; then
    kill "$containerd" 2>/dev/null || true
    wait "$containerd" || true
  fi
  rm -rf "$work"
}
trap cleanup EXIT
cleanup
mkdir -p "$work/images" "$root"

# --- Debian -------------------------------------------------------------------------------------------------------------------

packages=systemd,util-linux,mount,kmod,procps,hostname,jq,curl,ethtool,iproute2,iptables,nftables,conntrack,ipset
packages+=,containerd,runc,containernetworking-plugins

debian() {
  local suite mirror base
  suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
  # The mirror is the one this machine's apt uses.
  mirror=$(apt-get indextargets --format '$(CODENAME) $(SITE)' "Identifier: Packages" | awk -v s="$suite" '$1 == s { print $2; exit }')
  [[ -n $mirror ]] || die "apt knows no mirror for $suite: check its sources"
  base=$cache/debian-$(printf '%s %s' "$suite" "$packages" | sha256sum | cut -c1-12).tar
  if [[ ! -e $base ]]; then
    say "debootstrap $suite"
    debootstrap --variant=minbase --include="$packages" "$suite" "$root" "$mirror" >"$cache/debootstrap.log" ||
      die "debootstrap failed, see $cache/debootstrap.log"
    rm -rf "$root"/var/{cache/apt,lib/apt/lists,cache/debconf,log}/* "$root"/usr/share/{doc,man,locale,info}/*
    tar -C "$root" --numeric-owner -cf "$base.new" . && mv "$base.new" "$base"
  else
    tar -C "$root" --numeric-owner -xf "$base"
  fi
}

# --- kind's base image --------------------------------------------------------------------------------------------------------

# systemd as a container's init: nothing of a real machine's boot, only what a node needs.
init_system() {
  local units=$root/lib/systemd/system
  rm -f "$units"/{multi-user,local-fs,basic}.target.wants/* "$root"/etc/systemd/system/*.wants/*
  rm -f "$units"/sockets.target.wants/*{udev,initctl}* "$units"/sysinit.target.wants/systemd-tmpfiles-setup.service
  echo ReadKMsg=no >>"$root/etc/systemd/journald.conf"
  ln -sf /usr/lib/systemd/systemd "$root/usr/sbin/init"
  : >"$root/etc/machine-id"
}

kind_files() {
  local files
  files=$(cd / && go mod download -json "sigs.k8s.io/kind@$KIND_VERSION" | jq -r .Dir)/images/base/files
  # The module cache is read-only and carries no permission bits.
  (cd "$files" && find etc -type f -exec install -D -m 644 {} "$root/{}" \;)
  install -D -m 755 -t "$root/kind/bin" "$files"/kind/bin/*.sh
  install -D -m 755 "$files/usr/local/bin/entrypoint" "$root/usr/local/bin/entrypoint"
  chroot "$root" systemctl -q enable containerd kubelet undo-mount-hacks
  chroot "$root" systemctl -q mask systemd-binfmt
  # Pods may be forwarded between nodes; the engine leaves this alone on the host.
  echo 'net.ipv4.ip_forward=1' >"$root/etc/sysctl.d/20-berth.conf"
}

# Debian's containerd and CNI plugins where kind looks for its own builds.
container_runtime() {
  local binary
  for binary in containerd ctr containerd-shim-runc-v2; do ln -s "/usr/bin/$binary" "$root/usr/local/bin/$binary"; done
  mkdir -p "$root/usr/local/sbin" "$root/opt/cni/bin" "$root/etc/cni/net.d"
  ln -s /usr/sbin/runc "$root/usr/local/sbin/runc"
  mv "$root"/usr/lib/cni/{host-local,loopback,ptp,portmap} "$root/opt/cni/bin/" && rm -r "$root/usr/lib/cni"
  # A machine without CAP_SYS_RESOURCE cannot lower a pod's OOM score either.
  sed -i 's/\(restrict_oom_score_adj\) = false/\1 = true/' "$root/etc/containerd/config.toml"
  chroot "$root" ctr oci spec |
    jq 'del(.process.rlimits) | .hooks.createContainer = [{path: "/kind/bin/mount-product-files.sh"}]' >"$root/etc/containerd/cri-base.json"
}

kubernetes() {
  install -m 755 "$binaries"/{kubeadm,kubectl,kubelet} "$root/usr/bin/"
  install -m 755 "$here/node/crictl" "$root/usr/local/bin/crictl"
  mkdir -p "$root/etc/kubernetes/manifests"
  install -D -m 644 "$here/node/pod-network.yaml" "$root/kind/manifests/default-cni.yaml"
  install -D -m 644 "$here/node/storage.yaml" "$root/kind/manifests/default-storage.yaml"
  printf '%s' "$KUBERNETES_VERSION" >"$root/kind/version"
}

# --- the images that Kubernetes runs ------------------------------------------------------------------------------------------

# pack NAME FOLDER ENTRYPOINT…
pack() {
  local name=$1 folder=$2
  shift 2
  "$node" "$checkout/images/pack.ts" "$folder" "$name" "$work/images/$(basename "$folder").tar" "$@" >&2
  rm -rf "$folder"
}

# single NAME PROGRAM: an image of one static program.
single() {
  install -D -m 755 "$binaries/$2" "$work/$2/usr/local/bin/$2"
  pack "$1" "$work/$2" "/usr/local/bin/$2"
}

# with_iptables NAME PROGRAM: an image of a static program that calls the node's iptables, whose extensions are plugins with
# libraries of their own: one that is missing shows only when the first Service is made.
with_iptables() {
  local folder=$work/$2 programs=(/usr/sbin/{xtables-nft-multi,xtables-legacy-multi,nft,conntrack,ipset}) plugins link file
  plugins=$(chroot "$root" sh -c 'echo /usr/lib/*/xtables')
  mkdir -p "$folder"/usr/{bin,sbin,lib,lib64,local/bin} "$folder$plugins" "$folder"/{run,tmp,etc}
  for link in bin sbin lib lib64; do ln -s "usr/$link" "$folder/$link"; done
  cp -a "$root$plugins/." "$folder$plugins"   # many plugins are symbolic links to another
  for file in "${programs[@]}" $(chroot "$root" sh -c "ldd ${programs[*]} $plugins/*.so" 2>/dev/null | grep -o '/[^ :]*\.so[^ :]*' | sort -u); do
    [[ -e $folder$file ]] || install -D -m 755 "$root$file" "$folder$file"
  done
  local family mode
  for family in iptables ip6tables; do
    for mode in "" -save -restore; do
      ln -s xtables-nft-multi "$folder/usr/sbin/$family$mode"
      ln -s xtables-nft-multi "$folder/usr/sbin/$family-nft$mode"
      ln -s xtables-legacy-multi "$folder/usr/sbin/$family-legacy$mode"
    done
  done
  install -m 755 "$binaries/$2" "$folder/usr/local/bin/$2"
  pack "$1" "$folder" "/usr/local/bin/$2"
}

pod_network() {
  local folder=$work/pod-network applet
  install -D -m 755 /bin/busybox "$folder/bin/busybox"
  for applet in sh cat mv ip sleep; do ln -s busybox "$folder/bin/$applet"; done
  mkdir "$folder/tmp"
  install -m 755 "$binaries/kubectl" "$folder/bin/kubectl"
  install -m 755 "$here/node/pod-network.sh" "$folder/pod-network"
  pack berth/pod-network:1 "$folder" /pod-network
}

images() {
  local name
  for name in $("$binaries/kubeadm" config images list --kubernetes-version "$KUBERNETES_VERSION"); do
    case $name in
      */kube-proxy:*) with_iptables "$name" kube-proxy ;;
      */pause:*) single "$(awk -F '"' '/sandbox_image/ { print $2 }' "$root/etc/containerd/config.toml")" pause ;;
      *) single "$name" "$(sed 's|.*/||; s|:.*||' <<<"$name")" ;;
    esac
  done
  pod_network
  with_iptables berth/kube-router:1 kube-router
}

# The node's own containerd takes the images in, so that what it wrote is what it will read. Pinned ones the kubelet never removes.
preload() {
  local in_root=(chroot "$root" ctr -a /tmp/containerd.sock -n k8s.io images) archive name
  mv "$work/images" "$root/preload"
  chroot "$root" containerd --state /tmp/containerd --address /tmp/containerd.sock >"$cache/preload.log" 2>&1 &
  containerd=$!
  wait_until 120 "containerd (see $cache/preload.log)" "${in_root[@]}" ls
  for archive in "$root"/preload/*.tar; do "${in_root[@]}" import --no-unpack "/preload/$(basename "$archive")" >/dev/null; done
  for name in $("${in_root[@]}" ls -q); do "${in_root[@]}" label "$name" io.cri-containerd.pinned=pinned >/dev/null; done
  kill "$containerd"
  wait "$containerd" || true
  containerd=
  rm -rf "$root/preload" "$root"/tmp/*
}

say "making the node image $image"
debian
init_system
kind_files
container_runtime
kubernetes
images
preload
tar -C "$root" --numeric-owner -c . | docker import --change 'ENV container=docker' \
  --change 'ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]' - "$image" >/dev/null
docker images -q "${image%:*}" --filter "before=$image" | xargs -r docker rmi >/dev/null 2>&1 || true   # earlier recipes' images
printf '%s\n' "$image"
