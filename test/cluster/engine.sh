#!/bin/bash
# Our own Docker engine, for machines where none answers or none can pull: `engine.sh start`, `engine.sh stop`.
# It shares nothing with an engine that may run already: own data, socket, cgroup and bridge, and no iptables rule at all.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

export DOCKER_HOST=$engine_socket
pidfile=$engine/dockerd.pid
bridge=berth0
subnet=172.29.213.0/24
cgroup=berth-cluster

running() { [[ -s $pidfile ]] && [[ $(readlink "/proc/$(<"$pidfile")/exe") == */dockerd ]]; } 2>/dev/null

# The OCI runtime the engine calls. A machine may lack CAP_SYS_RESOURCE in its bounding set (bit 24); runc then cannot give it
# to kind's privileged containers and fails, so it is taken out of what runc is asked for.
write_runtime() {
  local runc
  runc=$(command -v runc)
  cat >"$engine/runtime" <<SH
#!/bin/sh
previous=
for argument; do
  case \$previous in
    --bundle) specification=\$argument/config.json ;;
    --process) specification=\$argument ;;
    *) specification= ;;
  esac
  [ -f "\$specification" ] && sed -i -e 's/"CAP_SYS_RESOURCE",//g' -e 's/,"CAP_SYS_RESOURCE"//g' "\$specification"
  previous=\$argument
done
exec $runc "\$@"
SH
  chmod 755 "$engine/runtime"
}

lacks_sys_resource() {
  local bounding
  bounding=$(awk '$1 == "CapBnd:" { print $2 }' /proc/self/status)
  ((!(16#$bounding >> 24 & 1)))
}

# Settings and folders of the machine that dockerd and privileged nodes (their systemd and kubelet) change, beyond the engine's own folder.
kernel_settings=(fs.file-max fs.protected_fifos fs.protected_regular fs.protected_symlinks fs.protected_hardlinks
  kernel.panic kernel.panic_on_oops vm.overcommit_memory vm.panic_on_oom)
runtime_folders=(/run/containerd /run/containerd/s /run/docker /run/docker/plugins /run/mount)

remember_machine() {
  [[ -e $engine/before ]] && return   # an engine that was killed left it: the older note is the true one
  local name
  for name in "${kernel_settings[@]}"; do printf 'setting %s %s\n' "$name" "$(<"/proc/sys/${name//.//}")"; done >"$engine/before.new"
  for name in "${runtime_folders[@]}"; do [[ -e $name ]] || printf 'absent %s\n' "$name"; done >>"$engine/before.new"
  mv "$engine/before.new" "$engine/before"
}

restore_machine() {
  [[ -e $engine/before ]] || return 0
  local kind name value
  while read -r kind name value; do
    case $kind in
      setting) echo "$value" >"/proc/sys/${name//.//}" ;;
      absent) rmdir "$name" 2>/dev/null || true ;;
    esac
  done < <(tac "$engine/before")
  rm "$engine/before"
}

start() {
  running && return 0
  [[ $EUID == 0 ]] || die "no usable Docker engine answers, and only root can start one"
  install_packages docker.io containerd runc iptables
  mkdir -p "$engine"
  remember_machine
  local runtime=()
  if lacks_sys_resource; then
    write_runtime
    runtime=(--add-runtime "berth=$engine/runtime" --default-runtime berth)
  fi
  # No iptables rules: nodes talk over one bridge, and docker-proxy carries the API server's port to 127.0.0.1.
  # Old engines write a key file below /etc unless told another place, which only the configuration file can do.
  local options=()
  if [[ $(dockerd --version) == *" 20."* ]]; then
    printf '{"deprecated-key-path": "%s"}\n' "$engine/key.json" >"$engine/daemon.json"
    options=(--config-file "$engine/daemon.json")
  fi
  setsid nohup dockerd --host "$engine_socket" --data-root "$engine/data" --exec-root "$engine/exec" --pidfile "$pidfile" \
    --bridge none --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false \
    --exec-opt native.cgroupdriver=cgroupfs --cgroup-parent "/$cgroup" --storage-driver overlay2 \
    "${runtime[@]}" "${options[@]}" >"$engine/dockerd.log" 2>&1 </dev/null &
  wait_until 120 "dockerd (see $engine/dockerd.log)" docker version
  docker network inspect kind >/dev/null 2>&1 ||
    docker network create --driver bridge --subnet "$subnet" --opt "com.docker.network.bridge.name=$bridge" kind >/dev/null
  # Forwarding is off: packets to an address without a rule inside the node do not leave the machine by the bridge.
  echo 0 >"/proc/sys/net/ipv4/conf/$bridge/forwarding"
  say "started a Docker engine of our own ($(docker version -f '{{.Server.Version}}'))"
}

stop() {
  if running; then
    local pid
    pid=$(<"$pidfile")
    docker network rm kind >/dev/null 2>&1 || true
    kill "$pid"
    wait_until 120 "dockerd to end" not_there "$pid"
  fi
  ip link delete "$bridge" 2>/dev/null || true
  awk -v below="$engine/" 'index($2, below) == 1 { print $2 }' /proc/mounts | sort -r | xargs -r umount -l
  find /sys/fs/cgroup -depth -type d -path "*/$cgroup*" -exec rmdir {} + 2>/dev/null || true
  rm -rf "$engine/exec" "$pidfile" "$engine/docker.sock"
  restore_machine
}

not_there() { ! kill -0 "$1"; }

case ${1:-} in
  start) start ;;
  stop) stop ;;
  *) die "usage: engine.sh start|stop" ;;
esac
