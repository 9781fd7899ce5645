#!/bin/sh
# Gives this node's pods a network: a CNI configuration made from the node's pod range, and a route to every other node's.
# It looks again every few seconds, which is all that a test cluster's joining and leaving nodes need.
configuration=/etc/cni/net.d/10-berth.conflist
nodes='{range .items[*]}{.metadata.name} {.spec.podCIDR} {.status.addresses[?(@.type=="InternalIP")].address}{"\n"}{end}'

configure() {
  wanted=$(printf '{
    "cniVersion": "0.3.1", "name": "berth",
    "plugins": [
      {"type": "ptp", "mtu": 1500, "ipMasq": true, "ipam": {
        "type": "host-local", "dataDir": "/run/cni-ipam", "ranges": [[{"subnet": "%s"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
      {"type": "portmap", "capabilities": {"portMappings": true}}
    ]
  }' "$1")
  [ "$wanted" = "$(cat $configuration 2>/dev/null)" ] && return
  # Written aside and renamed: the kubelet must never read half of it.
  echo "$wanted" >$configuration.new && mv $configuration.new $configuration && echo "pods of this node are in $1"
}

while :; do
  pause=3
  kubectl get nodes -o "jsonpath=$nodes" >/tmp/nodes || pause=1
  while read -r name range address; do
    [ -n "$address" ] || continue
    if [ "$name" = "$NODE_NAME" ]; then configure "$range"; else ip route replace "$range" via "$address"; fi
  done </tmp/nodes
  sleep $pause
done
