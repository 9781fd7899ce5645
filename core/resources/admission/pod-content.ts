import type { Validation, Variable } from './policy.ts';

/**
 * What a pod may be that the controller creates: the restricted Pod Security Standard, no rights in the cluster, and the kinds of
 * volumes that Berth makes. Admission sees the pod after webhooks have added to it, so containers of a service mesh are judged here
 * too. Those that `meshContainers` names may do what redirecting a pod's traffic takes.
 */

/** Values of the chart that the expressions need, as CEL expressions of lists of strings. */
export interface PodExceptions {
  meshContainers: string;
  meshTokenAudiences: string;
  cacheClaims: string;
}

export function podVariables({ meshContainers, meshTokenAudiences, cacheClaims }: PodExceptions): Variable[] {
  return [
    { name: 'meshContainers', expression: meshContainers },
    { name: 'meshTokenAudiences', expression: meshTokenAudiences },
    { name: 'cacheClaims', expression: cacheClaims },
    {
      name: 'containers',
      expression: `dyn(object.spec.containers) +
dyn(object.spec.?initContainers.orValue([])) +
dyn(object.spec.?ephemeralContainers.orValue([]))`,
    },
    { name: 'security', expression: 'dyn(object.spec).?securityContext.orValue({})' },
    { name: 'volumes', expression: 'dyn(object.spec.?volumes.orValue([]))' },
    // Claim of the volume of the session that owns the pod.
    {
      name: 'workspace',
      expression: "object.metadata.?ownerReferences.orValue([]).map(o, 'w-' + o.uid)",
    },
  ];
}

const own = 'c.?securityContext';
const isMesh = 'c.name in variables.meshContainers';
const orPod = (field: string, absent: string) =>
  `${own}.?${field}.orValue(variables.security.?${field}.orValue(${absent}))`;

/** SELinux options that set no more than a level and the types of containers. */
const plainSelinux = (options: string) => `${options}.?user.orValue('') == '' && ${options}.?role.orValue('') == '' &&
${options}.?type.orValue('') in ['', 'container_t', 'container_init_t', 'container_kvm_t', 'container_engine_t']`;

const HOOKS = ['livenessProbe', 'readinessProbe', 'startupProbe'].flatMap((probe) =>
  ['httpGet', 'tcpSocket'].map((action) => `c.?${probe}.?${action}.?host.orValue('') == ''`),
);
for (const hook of ['postStart', 'preStop']) {
  HOOKS.push(...['httpGet', 'tcpSocket'].map((way) => `c.?lifecycle.?${hook}.?${way}.?host.orValue('') == ''`));
}

/** Rules for each container `c`, with what a container is that breaks them; `mesh`: the chart can except the container. */
const CONTAINER_RULES: [holds: string, fault: string, mesh?: 'mesh'][] = [
  [`!${own}.?privileged.orValue(false)`, 'is privileged'],
  [`!${own}.?allowPrivilegeEscalation.orValue(true)`, 'does not have allowPrivilegeEscalation: false'],
  [
    `(${isMesh} || ${orPod('runAsNonRoot', 'false')}) &&
(${isMesh} || ${orPod('runAsUser', '1')} != 0)`,
    'may run as root',
    'mesh',
  ],
  [
    `${isMesh} ?
  ${own}.?capabilities.?add.orValue([]).all(a, a in ['NET_ADMIN', 'NET_RAW']) :
  (${own}.?capabilities.?drop.orValue([]).exists(d, d == 'ALL') && size(${own}.?capabilities.?add.orValue([])) == 0)`,
    'does not drop all capabilities, or adds some',
    'mesh',
  ],
  [
    `${own}.?seccompProfile.?type.orValue(variables.security.?seccompProfile.?type.orValue('')) in ['RuntimeDefault', 'Localhost']`,
    'has no seccomp profile',
  ],
  [
    `${own}.?appArmorProfile.?type.orValue('RuntimeDefault') in ['RuntimeDefault', 'Localhost']`,
    'leaves its AppArmor profile',
  ],
  [plainSelinux(`${own}.?seLinuxOptions`), 'sets an SELinux user, role or type'],
  [`${own}.?procMount.orValue('Default') == 'Default'`, 'has an unmasked /proc'],
  [`!${own}.?windowsOptions.?hostProcess.orValue(false)`, 'is a process of the host'],
  ['c.?ports.orValue([]).all(p, p.?hostPort.orValue(0) == 0)', 'has a port of the host'],
  [HOOKS.join(' &&\n'), 'has a probe or hook to another host'],
];

const WHO = 'the controller of Berth creates only pods that';
const NAME_IT =
  'If a service mesh has added it, name the containers of the mesh in admissionPolicies.meshContainers of the chart';
const LEAVE_IT = 'If a webhook has added it, have it left out of session pods';

function containerRule([holds, fault, mesh]: (typeof CONTAINER_RULES)[number]): Validation {
  return {
    expression: `variables.containers.all(c, ${holds})`,
    message: `${WHO} satisfy the restricted Pod Security Standard: a container ${fault}`,
    messageExpression: `'${WHO} satisfy the restricted Pod Security Standard: container "' +
variables.containers.filter(c, !(${holds}))[0].name + '" ${fault}. ${mesh ? NAME_IT : LEAVE_IT}'`,
  };
}

/** Rules for the pod as a whole. */
const POD_RULES: Validation[] = [
  {
    expression: `!object.spec.?hostNetwork.orValue(false) &&
!object.spec.?hostPID.orValue(false) &&
!object.spec.?hostIPC.orValue(false)`,
    message: `${WHO} share no network, processes or IPC with their node`,
  },
  {
    expression: `variables.security.?runAsUser.orValue(1) != 0 &&
size(variables.security.?sysctls.orValue([])) == 0 &&
variables.security.?seccompProfile.?type.orValue('RuntimeDefault') in ['RuntimeDefault', 'Localhost'] &&
variables.security.?appArmorProfile.?type.orValue('RuntimeDefault') in ['RuntimeDefault', 'Localhost'] &&
!variables.security.?windowsOptions.?hostProcess.orValue(false) &&
${plainSelinux('variables.security.?seLinuxOptions')}`,
    message: `${WHO} satisfy the restricted Pod Security Standard: the pod runs as root, sets sysctls, or leaves its seccomp, AppArmor or SELinux profile`,
  },
  {
    expression: `object.metadata.?annotations.orValue({}).all(k,
  !k.startsWith('container.apparmor.security.beta.kubernetes.io/') ||
  object.metadata.annotations[k] == 'runtime/default' ||
  object.metadata.annotations[k].startsWith('localhost/'))`,
    message: `${WHO} satisfy the restricted Pod Security Standard: an annotation takes a container out of its AppArmor profile`,
  },
  {
    expression: `object.spec.?serviceAccountName.orValue('default') in ['default', ''] &&
!object.spec.?automountServiceAccountToken.orValue(true)`,
    message: `${WHO} have no rights in the cluster: service account "default" and automountServiceAccountToken: false`,
  },
  {
    expression: `object.spec.?nodeName.orValue('') == '' && size(object.spec.?resourceClaims.orValue([])) == 0`,
    message: `${WHO} the scheduler places: without nodeName and without resourceClaims`,
  },
];

const VOLUME_RULES: Validation[] = [
  {
    expression: `variables.volumes.all(v, v.all(k, k in ['name', 'emptyDir', 'projected', 'persistentVolumeClaim'] ||
  (k in ['configMap', 'downwardAPI'] && size(variables.meshContainers) > 0)))`,
    message: `${WHO} have volumes of the kinds emptyDir, projected and persistentVolumeClaim`,
    messageExpression: `'${WHO} have volumes of the kinds emptyDir, projected and persistentVolumeClaim: "' +
variables.volumes.filter(v, !v.all(k, k in ['name', 'emptyDir', 'projected', 'persistentVolumeClaim'] ||
  (k in ['configMap', 'downwardAPI'] && size(variables.meshContainers) > 0)))[0].name + '" is another. ${NAME_IT}, which allows configMap and downwardAPI'`,
  },
  {
    expression: `variables.volumes.all(v, v.?projected.?sources.orValue([]).all(s, s.all(k, k == 'secret' ||
  (k in ['configMap', 'downwardAPI'] && size(variables.meshContainers) > 0) ||
  (k == 'serviceAccountToken' && s[k].?audience.orValue('') in variables.meshTokenAudiences))))`,
    message: `${WHO} have Secrets alone in their projected volumes, and no service account token. If a service mesh has added one, name its audience in admissionPolicies.meshTokenAudiences of the chart`,
  },
  {
    expression: `variables.volumes.all(v, !has(v.persistentVolumeClaim) ||
  v.persistentVolumeClaim.claimName in variables.workspace ||
  v.persistentVolumeClaim.claimName in variables.cacheClaims)`,
    message: `${WHO} mount the volume of their own session, w-UID`,
    messageExpression: `'${WHO} mount the volume of their own session, w-UID: "' + variables.volumes.filter(v, has(v.persistentVolumeClaim) &&
  !(v.persistentVolumeClaim.claimName in variables.workspace) &&
  !(v.persistentVolumeClaim.claimName in variables.cacheClaims))[0].persistentVolumeClaim.claimName +
'" is another. If it is the cache of a class (environments.cache.claim), name it in admissionPolicies.cacheClaims of the chart'`,
  },
];

export const podContent: Validation[] = [...POD_RULES, ...CONTAINER_RULES.map(containerRule), ...VOLUME_RULES];
