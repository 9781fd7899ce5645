/** Keys that identify the items of the built-in kinds' mergeable lists. */
export const mergeKeys: Record<string, string> = {
  addresses: 'type',
  conditions: 'type',
  containers: 'name',
  env: 'name',
  ephemeralContainers: 'name',
  hostAliases: 'ip',
  imagePullSecrets: 'name',
  initContainers: 'name',
  matchConditions: 'name',
  ownerReferences: 'uid',
  podIPs: 'ip',
  ports: 'containerPort',
  secrets: 'name',
  topologySpreadConstraints: 'topologyKey',
  variables: 'name',
  volumeDevices: 'devicePath',
  volumeMounts: 'mountPath',
  volumes: 'name',
};

/** Lists of plain values that are merged as sets. */
export const mergedSets = new Set(['finalizers']);
