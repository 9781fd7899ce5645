/**
 * What somebody could try who has stolen the account of one of Berth's programs, as data: each request with the policy that refuses it, or
 * RBAC. Beside them what the program itself asks for, which has to pass.
 */
import assert from 'node:assert/strict';
import { HELPER_PATH } from '../../core/enter/hello.ts';
import type { Pod } from '../../core/kube/builtin.ts';
import {
  ANNOTATION_TOUCHED_AT,
  networkPolicyName,
  podName,
  poolPodName,
  workspaceName,
} from '../../core/resources/names.ts';
import { podOf } from './pods-of-classes.ts';
import type { RawAnswer, RawApi } from './raw-api.ts';

/** Where the attempts are made. */
export interface Place {
  namespace: string;
  releaseNamespace: string;
  release: string;
  /** The API may enter pods (`api.enter.enabled`); else RBAC refuses that. */
  enter: boolean;
}

/** UIDs of the objects that own others there. */
interface Owners {
  session: string;
  pool: string;
  turn: string;
  /** A ConfigMap, which owns no pods of Berth. */
  other: string;
}

export interface Attempt {
  what: string;
  /** What refuses the request: the part of a policy's name that tells it from others, or RBAC. Undefined: it passes. */
  by?: string;
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: string;
  body?: unknown;
  /** Type of a patch; default: a merge patch. */
  type?: 'json';
  /** The embedded API server does not serve the kind or the subresource. */
  onlyReal?: true;
}

// biome-ignore lint/suspicious/noExplicitAny: parts of objects that are made wrong on purpose
type Any = any;
type Change = (object: Any) => void;

const DRY = '?dryRun=All';
const OTHER_UID = '9e1f6c1e-77aa-4f0e-8a61-0a3f2f6f1d22';
/** A service account that somebody else may have given rights. */
const POWERFUL = 'powerful';
const BERTH = { apiVersion: 'berth.dev/v1alpha1' };

const core = (namespace: string, resource: string) => `/api/v1/namespaces/${namespace}/${resource}`;
const networking = (namespace: string) => `/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies`;
const berth = (namespace: string, resource: string) => `/apis/berth.dev/v1alpha1/namespaces/${namespace}/${resource}`;

const sessionOwner = (uid: string, fields: object = {}) => ({
  ...BERTH,
  ...{ kind: 'Session', name: 'mine', uid, controller: true },
  ...fields,
});
const poolOwner = (uid: string) => sessionOwner(uid, { kind: 'SessionPool' });
const otherOwner = (uid: string) => sessionOwner(uid, { apiVersion: 'v1', kind: 'ConfigMap' });

/** A pod as the controller makes it for the Session, with some of it changed. */
function pod(uid: string, number: number, change: Change = () => {}): Pod {
  const made = podOf({ runner: 'Injected', image: 'any:1' }) as Any;
  made.metadata = { name: podName(uid, number), labels: { app: 'mine' }, ownerReferences: [sessionOwner(uid)] };
  // No node takes the pods of the attempts.
  made.spec.schedulerName = 'nobody';
  change(made);
  return made;
}

function claim(uid: string, change: Change = () => {}): object {
  const made = {
    metadata: { name: workspaceName(uid), ownerReferences: [sessionOwner(uid)] },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
  };
  change(made);
  return made;
}

const OWN_LABELS = { 'app.kubernetes.io/managed-by': 'berth', 'berth.dev/network': 'quick' };

function networkPolicy(change: Change = () => {}): object {
  const made = {
    metadata: { name: networkPolicyName('quick'), labels: OWN_LABELS },
    spec: { podSelector: { matchLabels: { 'berth.dev/network': 'quick' } }, policyTypes: ['Ingress', 'Egress'] },
  };
  change(made);
  return made;
}

const aSession = (spec: object, name = 'other') => ({ ...BERTH, kind: 'Session', metadata: { name }, spec });

/** A Session as the controller makes it for an Environment. */
const build = () =>
  aSession(
    { class: 'none', turns: 'One', build: 'Environment', input: { requirements: ['six'] } },
    'env-0123456789abcdef0123',
  );

const aTurn = (spec: object, name = 'other') => ({
  ...{ ...BERTH, kind: 'Turn', metadata: { name } },
  spec: { session: 'mine', input: 'hello', ...spec },
});

/** The Turn that the controller makes of a Session's input. */
function firstTurn(uid: string, change: Change = () => {}): object {
  const { controller: _none, ...owner } = sessionOwner(uid);
  const made = aTurn({ requester: 'ann' }, 'mine') as Any;
  made.metadata.ownerReferences = [owner];
  change(made);
  return made;
}

const anApproval = (spec: object, name = 'other') => ({
  ...{ ...BERTH, kind: 'Approval', metadata: { name } },
  spec: { turn: 'turn', requestId: 'r', decision: 'Deny', ...spec },
});

const lease = (name: string) => ({
  ...{ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name } },
  spec: { holderIdentity: 'me' },
});
const leases = (namespace: string) => `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;

const event = (component: string, about: object) => ({
  metadata: { name: 'mine.1' },
  involvedObject: about,
  ...{ type: 'Normal', reason: 'Tried', message: 'tried', count: 1, source: { component } },
});

const owned = ({ other }: Owners) => ({ metadata: { ownerReferences: [otherOwner(other)] } });

/** Requests for objects of the namespace, or of the core API where `what` says so, that no role of the account allows. */
function refusedByRbac({ namespace, releaseNamespace }: Place, requests: [verb: string, what: string][]): Attempt[] {
  const methods: Record<string, Attempt['method']> = {
    get: 'GET',
    create: 'POST',
    put: 'PUT',
    patch: 'PATCH',
    delete: 'DELETE',
  };
  const below: [string, string, object?][] = requests.map(([verb, what]) => [verb, core(namespace, what)]);
  const [apps, rbac] = ['/apis/apps/v1', '/apis/rbac.authorization.k8s.io/v1'];
  const registration = '/apis/admissionregistration.k8s.io/v1';
  below.push(
    ['get', core(releaseNamespace, 'secrets')],
    ['get', core('kube-system', 'secrets')],
    ['create', '/api/v1/namespaces'],
    ['patch', '/api/v1/nodes/node'],
    ['patch', `/api/v1/namespaces/${namespace}`],
    ['create', `${apps}/namespaces/${namespace}/deployments`],
    ['create', `${apps}/namespaces/kube-system/daemonsets`],
    ['create', `${rbac}/clusterrolebindings`],
    ['create', `${rbac}/namespaces/${namespace}/rolebindings`],
    ['patch', `${rbac}/clusterroles/cluster-admin`],
    ['create', `${registration}/mutatingwebhookconfigurations`],
    ['delete', `${registration}/validatingadmissionpolicies/berth-controller-pods.berth-system`],
    ['delete', `${registration}/validatingadmissionpolicybindings/berth-controller-pods.berth-system`],
    ['patch', '/apis/berth.dev/v1alpha1/sessionclasses/default'],
    ['create', '/apis/berth.dev/v1alpha1/sessionclasses'],
    ['patch', `${berth(namespace, 'sessions')}/mine/status`],
    ['delete', berth(namespace, 'turns')],
    ['create', berth(namespace, 'sessionpools')],
    ['create', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'],
    ['create', '/apis/certificates.k8s.io/v1/certificatesigningrequests'],
  );
  return below.map(([verb, path]) => {
    const method = methods[verb] as Attempt['method'];
    const hasBody = method !== 'GET' && method !== 'DELETE';
    return { what: `${verb} ${path}`, by: 'RBAC', method, path, ...(hasBody ? { body: {} } : {}) };
  });
}

/** Names of the pods that stand before the attempts. */
const standing = ({ session, pool }: Owners) => ({
  mine: podName(session, 101),
  relabelled: podName(session, 102),
  orphan: podName(session, 103),
  gated: podName(session, 104),
  taken: podName(session, 105),
  waiting: poolPodName(pool, 101),
  claimed: poolPodName(pool, 102),
  takenFromPool: poolPodName(pool, 103),
  web: 'web-1',
});

/** Makes what the attempts are about, as an administrator; returns whom it belongs to. */
export async function prepare(admin: RawApi, { namespace }: Place): Promise<Owners> {
  const make = async (path: string, object: object): Promise<string> => {
    const { status, text, body } = await admin.post(path, object);
    assert.equal(status, 201, text);
    return body.metadata.uid;
  };
  await make(core(namespace, 'serviceaccounts'), { metadata: { name: POWERFUL } });
  const owners = {
    // The class is not there, so that no controller makes anything for them.
    session: await make(berth(namespace, 'sessions'), {
      ...BERTH,
      kind: 'Session',
      metadata: { name: 'mine' },
      spec: { class: 'none' },
    }),
    pool: await make(berth(namespace, 'sessionpools'), {
      ...{ ...BERTH, kind: 'SessionPool' },
      metadata: { name: 'mine' },
      spec: { class: 'none', replicas: 0 },
    }),
    turn: await make(berth(namespace, 'turns'), aTurn({ requester: 'ann' }, 'turn')),
    other: await make(core(namespace, 'configmaps'), { metadata: { name: 'mine' } }),
  };
  await make(berth(namespace, 'approvals'), anApproval({}, 'approval'));
  const about = { ...BERTH, kind: 'Session', name: 'mine', namespace };
  for (const component of ['berth-controller', 'kubelet']) {
    const made = { ...event(component, about), metadata: { name: `event.${component}` } };
    await make(core(namespace, 'events'), made);
  }
  const { session, pool, other } = owners;
  const names = standing(owners);
  const pods: [name: string, ownerReferences: object[], more?: Change][] = [
    [names.mine, [sessionOwner(session)]],
    [names.relabelled, [sessionOwner(session)], ({ metadata }) => (metadata.labels = { 'berth.dev/class': 'wrong' })],
    [names.orphan, []],
    [names.gated, [sessionOwner(session)], ({ spec }) => (spec.schedulingGates = [{ name: 'berth.dev/turn' }])],
    [names.taken, [otherOwner(other)]],
    [names.waiting, [poolOwner(pool)]],
    [names.claimed, [sessionOwner(session)]],
    [names.takenFromPool, [otherOwner(other)]],
    [names.web, [], ({ metadata }) => (metadata.labels = OWN_LABELS)],
  ];
  for (const [name, ownerReferences, more = () => {}] of pods) {
    const made = pod(session, 1, more) as Any;
    await make(core(namespace, 'pods'), { ...made, metadata: { ...made.metadata, name, ownerReferences } });
  }
  const changed: Change[] = [
    () => {},
    ({ metadata }) => Object.assign(metadata, { name: 'berth-slow', labels: { 'berth.dev/network': 'slow' } }),
    ({ metadata }) => Object.assign(metadata, { name: 'other' }),
  ];
  for (const change of changed) await make(networking(namespace), networkPolicy(change));
  return owners;
}

/** Changes of a pod by which it would be more than a session's pod, or another one. */
const WRONG_PODS: Record<string, Change> = {
  'that is privileged': ({ spec }) => {
    spec.containers[0].securityContext.allowPrivilegeEscalation = true;
    spec.containers[0].securityContext.privileged = true;
  },
  'that may gain privileges': ({ spec }) => (spec.containers[0].securityContext.allowPrivilegeEscalation = true),
  'that does not say whether it may': ({ spec }) => delete spec.containers[0].securityContext.allowPrivilegeEscalation,
  'of root': ({ spec }) => (spec.containers[0].securityContext.runAsUser = 0),
  'that may run as root': ({ spec }) => (spec.containers[0].securityContext.runAsNonRoot = false),
  'with no container that has to run as a user': ({ spec }) => delete spec.securityContext.runAsNonRoot,
  'of root as a whole': ({ spec }) => (spec.securityContext.runAsUser = 0),
  'with a capability': ({ spec }) => (spec.containers[0].securityContext.capabilities.add = ['NET_ADMIN']),
  'with the capabilities of its runtime': ({ spec }) => delete spec.containers[0].securityContext.capabilities,
  'without seccomp': ({ spec }) => (spec.containers[0].securityContext.seccompProfile = { type: 'Unconfined' }),
  'all of which is without seccomp': ({ spec }) => (spec.securityContext.seccompProfile = { type: 'Unconfined' }),
  'that does not say which seccomp it has': ({ spec }) => delete spec.securityContext.seccompProfile,
  'without AppArmor': ({ spec }) => (spec.containers[0].securityContext.appArmorProfile = { type: 'Unconfined' }),
  'without AppArmor by an annotation': ({ metadata }) =>
    (metadata.annotations = { 'container.apparmor.security.beta.kubernetes.io/session': 'unconfined' }),
  'of another SELinux type': ({ spec }) => (spec.containers[0].securityContext.seLinuxOptions = { type: 'spc_t' }),
  'all of which is of another SELinux role': ({ spec }) => (spec.securityContext.seLinuxOptions = { role: 'sysadm_r' }),
  'with an unmasked /proc': ({ spec }) => {
    spec.hostUsers = false;
    spec.containers[0].securityContext.procMount = 'Unmasked';
  },
  'with a privileged init container': ({ spec }) => {
    spec.initContainers[0].securityContext.allowPrivilegeEscalation = true;
    spec.initContainers[0].securityContext.privileged = true;
  },
  'with a second container of root': ({ spec }) =>
    spec.containers.push({ ...spec.containers[0], name: 'more', securityContext: { runAsUser: 0 } }),
  'with a container that has the name of a mesh’s': ({ spec }) =>
    spec.initContainers.push({ ...spec.containers[0], name: 'istio-init', securityContext: { runAsUser: 0 } }),
  'with a port of the host': ({ spec }) => (spec.containers[0].ports = [{ containerPort: 80, hostPort: 80 }]),
  'with a probe to another host': ({ spec }) =>
    (spec.containers[0].livenessProbe = { httpGet: { host: '169.254.169.254', port: 80 } }),
  'with a hook to another host': ({ spec }) =>
    (spec.containers[0].lifecycle = { postStart: { httpGet: { host: '169.254.169.254', port: 80 } } }),
  'in the network of its node': ({ spec }) => (spec.hostNetwork = true),
  'among the processes of its node': ({ spec }) => (spec.hostPID = true),
  'with the IPC of its node': ({ spec }) => (spec.hostIPC = true),
  'with a sysctl': ({ spec }) => (spec.securityContext.sysctls = [{ name: 'kernel.shm_rmid_forced', value: '1' }]),
  'with a folder of its node': ({ spec }) => spec.volumes.push({ name: 'root', hostPath: { path: '/' } }),
  'with another volume of a Secret': ({ spec }) => spec.volumes.push({ name: 'v', secret: { secretName: 's' } }),
  'with a ConfigMap': ({ spec }) => spec.volumes.push({ name: 'v', configMap: { name: 'c' } }),
  'with a volume over NFS': ({ spec }) => spec.volumes.push({ name: 'v', nfs: { server: '10.0.0.1', path: '/' } }),
  'with a volume of a driver': ({ spec }) => spec.volumes.push({ name: 'v', csi: { driver: 'secrets.example.com' } }),
  'with the volume of somebody else': ({ spec }) =>
    spec.volumes.push({ name: 'v', persistentVolumeClaim: { claimName: 'database' } }),
  'with the volume of another session': ({ spec }) =>
    spec.volumes.push({ name: 'v', persistentVolumeClaim: { claimName: workspaceName(OTHER_UID) } }),
  'with a token in a volume': ({ spec }) =>
    spec.volumes.push({ name: 'v', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } }),
  'with a token for a mesh': ({ spec }) =>
    spec.volumes.push({
      name: 'v',
      projected: { sources: [{ serviceAccountToken: { path: 'token', audience: 'istio-ca' } }] },
    }),
  'with its token': ({ spec }) => (spec.automountServiceAccountToken = true),
  'with the token that is the default': ({ spec }) => delete spec.automountServiceAccountToken,
  'of another service account': ({ spec }) => (spec.serviceAccountName = POWERFUL),
  'on a node of its choice': ({ spec }) => (spec.nodeName = 'control-plane'),
  'with a device': ({ spec }) => (spec.resourceClaims = [{ name: 'gpu', resourceClaimName: 'gpu' }]),
  'without an owner': ({ metadata }) => delete metadata.ownerReferences,
  'of an owner that is not its controller': ({ metadata }) => (metadata.ownerReferences[0].controller = false),
  'of another kind of owner': ({ metadata }) =>
    Object.assign(metadata.ownerReferences[0], { apiVersion: 'apps/v1', kind: 'ReplicaSet' }),
  'of a Session of another group': ({ metadata }) => (metadata.ownerReferences[0].apiVersion = 'other.dev/v1'),
  'of two owners': ({ metadata }) =>
    metadata.ownerReferences.push(sessionOwner(OTHER_UID, { kind: 'SessionPool', name: 'more', controller: false })),
  'of an owner whose UID is a pattern': ({ metadata }) => (metadata.ownerReferences[0].uid = '.*'),
  'of an owner whose UID is no UID': ({ metadata }) => {
    metadata.ownerReferences[0].uid = 'database';
    metadata.name = 's-database-1';
  },
  'with the name of another session’s': ({ metadata }) => (metadata.name = podName(OTHER_UID, 1)),
  'with the name of a pool’s': ({ metadata }) => (metadata.name = poolPodName(OTHER_UID, 1)),
  'with any name': ({ metadata }) => (metadata.name = 'web-2'),
};

/** Namespaces in which Berth makes nothing. */
const closed = ({ releaseNamespace }: Place) => ['kube-system', 'kube-public', 'kube-node-lease', releaseNamespace];

/** Attempts with the account of the controller. */
export function controllerAttempts(place: Place, owners: Owners): Attempt[] {
  const { namespace, releaseNamespace, release } = place;
  const { session, pool } = owners;
  const names = standing(owners);
  const pods = core(namespace, 'pods');
  const at = (name: string) => `${pods}/${name}${DRY}`;
  const create = (what: string, object: object, by: string | undefined, path = pods): Attempt => ({
    ...{ what, method: 'POST', path: `${path}${DRY}`, body: object },
    ...(by ? { by } : {}),
  });
  const change = (what: string, name: string, body: unknown, more: Partial<Attempt> = {}): Attempt => ({
    ...{ what, method: 'PATCH', path: at(name), body, ...more },
  });
  const ownersOf = (kind: string, ownerReferences: object[]): Attempt => ({
    ...{ what: `the owner of one of the ${kind}`, method: 'PATCH' },
    path: `${berth(namespace, kind)}/${kind.slice(0, -1)}${DRY}`,
    body: { metadata: { ownerReferences } },
  });
  const eventPatch = (component: string) => ({
    ...({
      method: 'PATCH',
      path: `${core(namespace, 'events')}/event.${component}${DRY}`,
      body: { count: 2 },
    } as const),
  });
  const about = { ...BERTH, kind: 'Session', name: 'mine', namespace };
  const labels = { metadata: { labels: { 'berth.dev/session': 'mine' } } };
  const adopted = { metadata: { ownerReferences: [sessionOwner(session)] } };
  const json = (path: string, value: unknown) => [{ op: 'add', path, value }];
  const policies = networking(namespace);
  const poolPod = (name: string, owner = poolOwner(pool)) =>
    pod(session, 1, ({ metadata }) => Object.assign(metadata, { name, ownerReferences: [owner] }));
  const PODS = 'controller-pods';
  const CLAIMS = 'controller-claims';
  const NETWORK = 'controller-networkpolicies';
  const ATTACHES = 'controller-attaches';
  return [
    // What the controller does.
    create('a pod of a Session', pod(session, 1), undefined),
    create('a pod of a SessionPool', poolPod(poolPodName(pool, 1)), undefined),
    create('the volume of a Session', claim(session), undefined, core(namespace, 'persistentvolumeclaims')),
    create(
      'the NetworkPolicy of a class',
      networkPolicy(({ metadata, spec }) => {
        metadata.name = networkPolicyName('new');
        spec.podSelector.matchLabels = { 'berth.dev/network': 'new' };
      }),
      undefined,
      policies,
    ),
    ...[names.mine, names.relabelled, names.orphan, names.waiting, names.claimed].flatMap((name): Attempt[] => [
      change(`labels of ${name}`, name, labels),
      { what: `deletion of ${name}`, method: 'DELETE', path: at(name) },
    ]),
    change('claim of a pod of a pool', names.waiting, adopted),
    change('start of a pod without a runner', names.gated, { spec: { schedulingGates: null } }),
    { what: 'deletion of its NetworkPolicy', method: 'DELETE', path: `${policies}/berth-quick${DRY}` },
    create('a Session that builds', build(), undefined, berth(namespace, 'sessions')),
    create('the Turn of a Session', firstTurn(session), undefined, berth(namespace, 'turns')),
    ownersOf('turns', [sessionOwner(session)]),
    ownersOf('approvals', [{ ...BERTH, kind: 'Turn', name: 'turn', uid: owners.turn }]),
    create('an Event', event('berth-controller', about), undefined, core(namespace, 'events')),
    { what: 'the count of an Event', ...eventPatch('berth-controller') },

    // What somebody else could do with its account.
    ...Object.entries(WRONG_PODS).map(([what, wrong]) => create(`a pod ${what}`, pod(session, 1, wrong), PODS)),
    create('a pod of a SessionPool with the name of another’s', poolPod(poolPodName(OTHER_UID, 1)), PODS),
    create('a pod of a SessionPool with the name of a Session’s', poolPod(podName(pool, 1)), PODS),
    create('a pod of a pool that a Session owns', poolPod(poolPodName(pool, 1), sessionOwner(pool)), PODS),
    ...closed(place).map((other) => create(`a pod in ${other}`, pod(session, 1), PODS, core(other, 'pods'))),
    change('labels of a pod that is not Berth’s', names.web, labels, { by: PODS }),
    change('labels of a pod with another controller', names.taken, labels, { by: PODS }),
    change('claim of a pod with another controller', names.takenFromPool, adopted, { by: PODS }),
    change('another label', names.mine, { metadata: { labels: { app: 'web' } } }, { by: PODS }),
    change('the removal of another label', names.mine, { metadata: { labels: { app: null } } }, { by: PODS }),
    change('an annotation', names.mine, { metadata: { annotations: { 'example.com/x': 'y' } } }, { by: PODS }),
    change('a finalizer', names.mine, { metadata: { finalizers: ['example.com/stay'] } }, { by: PODS }),
    change('another owner', names.orphan, { metadata: { ownerReferences: [otherOwner(owners.other)] } }, { by: PODS }),
    change('another image', names.mine, json('/spec/containers/0/image', 'other:1'), { by: PODS, type: 'json' }),
    change('a deadline', names.mine, { spec: { activeDeadlineSeconds: 1 } }, { by: PODS }),
    change('a toleration', names.mine, json('/spec/tolerations/-', { operator: 'Exists' }), {
      ...{ by: PODS, type: 'json' },
      onlyReal: true,
    }),
    change(
      'the node of a pod that waits',
      names.gated,
      { spec: { nodeSelector: { a: 'b' } } },
      {
        ...{ by: PODS, onlyReal: true },
      },
    ),
    ...[names.web, names.taken, names.takenFromPool].map(
      (name): Attempt => ({ what: `deletion of ${name}`, by: PODS, method: 'DELETE', path: at(name) }),
    ),
    ...['web-1', `x${podName(session, 1)}`].map(
      (name): Attempt => ({
        ...{ what: `an attach to ${name}`, by: ATTACHES, method: 'GET' },
        path: `${pods}/${name}/attach?stdin=true&container=session`,
      }),
    ),
    ...closed(place).map(
      (other): Attempt => ({
        ...{ what: `an attach in ${other}`, by: ATTACHES, method: 'GET' },
        path: `${core(other, 'pods')}/${podName(session, 1)}/attach?stdin=true&container=session`,
      }),
    ),
    ...Object.entries<Change>({
      'without an owner': ({ metadata }) => delete metadata.ownerReferences,
      'of another session': ({ metadata }) => (metadata.name = workspaceName(OTHER_UID)),
      'of any name': ({ metadata }) => (metadata.name = 'data'),
      'that is a copy': ({ spec }) => (spec.dataSource = { kind: 'PersistentVolumeClaim', name: 'database' }),
      'that is a certain one': ({ spec }) => (spec.volumeName = 'backup'),
      'that is selected': ({ spec }) => (spec.selector = { matchLabels: { a: 'b' } }),
      'that is a device': ({ spec }) => (spec.volumeMode = 'Block'),
    }).map(([what, wrong]) =>
      create(`a volume ${what}`, claim(session, wrong), CLAIMS, core(namespace, 'persistentvolumeclaims')),
    ),
    ...closed(place).map((other) =>
      create(`a volume in ${other}`, claim(session), CLAIMS, core(other, 'persistentvolumeclaims')),
    ),
    ...Object.entries<Change>({
      'for all pods': ({ spec }) => (spec.podSelector = {}),
      'for other pods': ({ spec }) => (spec.podSelector.matchLabels = { app: 'web' }),
      'of another name': ({ metadata }) => (metadata.name = 'open'),
      'that lets others in': ({ spec }) => (spec.ingress = [{}]),
      'that limits no ingress': ({ spec }) => (spec.policyTypes = ['Egress']),
      'that limits no egress': ({ spec }) => (spec.policyTypes = ['Ingress']),
    }).map(([what, wrong]) =>
      create(
        `a NetworkPolicy ${what}`,
        networkPolicy((policy) => {
          policy.metadata.name = networkPolicyName('new');
          policy.spec.podSelector.matchLabels = { 'berth.dev/network': 'new' };
          wrong(policy);
        }),
        NETWORK,
        policies,
      ),
    ),
    ...closed(place).map((other) => create(`a NetworkPolicy in ${other}`, networkPolicy(), NETWORK, networking(other))),
    ...['berth-slow', 'other'].flatMap((name): Attempt[] => [
      { what: `deletion of NetworkPolicy ${name}`, by: NETWORK, method: 'DELETE', path: `${policies}/${name}${DRY}` },
      {
        ...{ what: `change of NetworkPolicy ${name}`, by: NETWORK, method: 'PUT', path: `${policies}/${name}${DRY}` },
        body: networkPolicy(({ metadata }) => (metadata.name = name)),
      },
    ]),
    {
      ...{ what: 'its NetworkPolicy for all pods', by: NETWORK, method: 'PUT', path: `${policies}/berth-quick${DRY}` },
      body: networkPolicy(({ spec }) => (spec.podSelector = {})),
    },
    ...Object.entries<object>({
      'with the token of an account': {
        metadata: { name: 'token', annotations: { 'kubernetes.io/service-account.name': `${release}-api` } },
        type: 'kubernetes.io/service-account-token',
      },
      'with the token of an account in place of the master key': {
        metadata: {
          name: `${release}-master-key`,
          annotations: { 'kubernetes.io/service-account.name': `${release}-api` },
        },
        type: 'kubernetes.io/service-account-token',
      },
      'with the certificate of the API': { metadata: { name: 'api-tls' }, type: 'Opaque' },
    }).map(([what, secret]) =>
      create(`a Secret ${what}`, secret, 'controller-secrets', core(releaseNamespace, 'secrets')),
    ),
    create('the Lease of another', lease('other'), 'controller-leases', leases(releaseNamespace)),
    create('any Session', aSession({}), 'controller-sessions', berth(namespace, 'sessions')),
    create(
      'a Session with the name of a build',
      aSession({}, 'env-0123456789abcdef0123'),
      'controller-sessions',
      berth(namespace, 'sessions'),
    ),
    create('a build in kube-system', build(), 'controller-sessions', berth('kube-system', 'sessions')),
    create('a Turn of a running Session', aTurn({}), 'controller-turns', berth(namespace, 'turns')),
    create(
      'the Turn of a Session without its owner',
      firstTurn(session, ({ metadata }) => delete metadata.ownerReferences),
      'controller-turns',
      berth(namespace, 'turns'),
    ),
    {
      ...{ what: 'the input of a Turn', by: 'controller-turns', method: 'PATCH' },
      ...{ path: `${berth(namespace, 'turns')}/turn${DRY}`, body: { spec: { input: 'other' } } },
    },
    {
      ...{ what: 'the decision of an Approval', by: 'controller-approvals', method: 'PATCH' },
      ...{ path: `${berth(namespace, 'approvals')}/approval${DRY}`, body: { metadata: { labels: { a: 'b' } } } },
    },
    create('an Event of the kubelet', event('kubelet', about), 'controller-events', core(namespace, 'events')),
    create(
      'an Event about a node',
      event('berth-controller', { ...about, apiVersion: 'v1', kind: 'Node' }),
      'controller-events',
      core(namespace, 'events'),
    ),
    { what: 'an Event of somebody else', by: 'controller-events', ...eventPatch('kubelet') },
    ...refusedByRbac(place, [
      ['get', 'secrets'],
      ['get', `secrets/${release}-master-key`],
      ['create', 'pods/mine/exec?command=sh&stdin=true&container=session'],
      ['create', 'pods/mine/portforward?ports=80'],
      ['create', 'pods/mine/eviction'],
      ['create', 'pods/mine/binding'],
      ['patch', 'pods/mine/status'],
      ['patch', 'pods/mine/ephemeralcontainers'],
      ['patch', 'pods/mine/resize'],
      ['put', 'pods/mine'],
      ['delete', 'pods'],
      ['create', `serviceaccounts/${POWERFUL}/token`],
      ['create', 'serviceaccounts'],
      ['patch', 'configmaps/mine'],
      ['delete', 'persistentvolumeclaims/data'],
      ['create', 'services'],
    ]),
  ];
}

/** Attempts with the account of the HTTP API. */
export function apiAttempts(place: Place, owners: Owners): Attempt[] {
  const { namespace, releaseNamespace, release } = place;
  const REQUESTERS = 'api-requesters';
  const CHANGES = 'api-changes';
  const EVENTS = 'api-events';
  const EXEC = place.enter ? 'api-exec' : 'RBAC';
  const [sessions, turns, approvals] = ['sessions', 'turns', 'approvals'].map((kind) => berth(namespace, kind)) as [
    string,
    string,
    string,
  ];
  const create = (what: string, path: string, body: object, by?: string): Attempt => ({
    ...{ what, method: 'POST', path: `${path}${DRY}`, body },
    ...(by ? { by } : {}),
  });
  const patch = (what: string, path: string, body: object, by?: string): Attempt => ({
    ...{ what, method: 'PATCH', path: `${path}${DRY}`, body },
    ...(by ? { by } : {}),
  });
  const kinds: [string, string, (spec: object) => object][] = [
    ['Session', sessions, (spec) => aSession(spec)],
    ['Turn', turns, (spec) => aTurn(spec)],
    ['Approval', approvals, (spec) => anApproval(spec)],
  ];
  const users = ['ann', 'kubernetes-admin', `system:serviceaccount:${namespace}:ann`];
  const OF_CLUSTER = ['system:admin', 'system:node:n', 'system:kube-controller-manager', 'system:serviceaccounts'];
  const about = { ...BERTH, kind: 'Session', name: 'mine', namespace };
  const key = (of: 'key' | 'made', component = 'berth-api') => ({
    ...event(component, about),
    metadata: { name: `idempotency-${of}-${'a'.repeat(40)}` },
  });
  const enter = (what: string, by: string, pod: string, query: string, where = namespace): Attempt => ({
    ...{ what, by, method: 'GET', path: `${core(where, 'pods')}/${pod}/exec?${query}&stdin=true&stdout=true` },
  });
  const mine = podName(owners.session, 1);
  const HELPER = `command=${encodeURIComponent(HELPER_PATH)}&container=session`;
  return [
    // What the API does.
    ...kinds.flatMap(([kind, path, made]) =>
      users.map((requester) => create(`${kind} of ${requester}`, path, made({ requester }))),
    ),
    patch('a hold', `${sessions}/mine`, { spec: { suspend: true } }),
    patch('a suspension', `${sessions}/mine`, { spec: { suspendRequest: 'x1' } }),
    patch('a restart', `${sessions}/mine`, { spec: { restartRequest: 'x1' } }),
    patch('a touch', `${sessions}/mine`, { metadata: { annotations: { [ANNOTATION_TOUCHED_AT]: 'now' } } }),
    patch('a cancellation', `${turns}/turn`, { spec: { cancel: true } }),
    { what: 'a deletion', method: 'DELETE', path: `${sessions}/mine${DRY}` },
    create('the claim of a key', core(namespace, 'events'), key('key')),
    create('the object of a key', core(namespace, 'events'), key('made')),

    // What somebody else could do with its account.
    ...kinds.flatMap(([kind, path, made]) => [
      create(`${kind} of nobody`, path, made({}), REQUESTERS),
      ...OF_CLUSTER.map((requester) => create(`${kind} of "${requester}"`, path, made({ requester }), REQUESTERS)),
    ]),
    patch('another program', `${sessions}/mine`, { spec: { agent: { command: ['sh'] } } }, CHANGES),
    patch('another image', `${sessions}/mine`, { spec: { image: 'other:1' } }, CHANGES),
    patch('another priority', `${sessions}/mine`, { spec: { priority: 9 } }, CHANGES),
    patch('a label of a Session', `${sessions}/mine`, { metadata: { labels: { a: 'b' } } }, CHANGES),
    patch('an annotation of a Session', `${sessions}/mine`, { metadata: { annotations: { a: 'b' } } }, CHANGES),
    patch('a finalizer of a Session', `${sessions}/mine`, { metadata: { finalizers: ['a.b/c'] } }, CHANGES),
    patch('an owner of a Session', `${sessions}/mine`, owned(owners), CHANGES),
    patch('another input', `${turns}/turn`, { spec: { input: 'other' } }, CHANGES),
    patch('a label of a Turn', `${turns}/turn`, { metadata: { labels: { a: 'b' } } }, CHANGES),
    patch('an annotation of a Turn', `${turns}/turn`, { metadata: { annotations: { a: 'b' } } }, CHANGES),
    patch('an owner of a Turn', `${turns}/turn`, owned(owners), CHANGES),
    create('an Event of any name', core(namespace, 'events'), event('berth-api', about), EVENTS),
    create('an Event of the kubelet', core(namespace, 'events'), key('key', 'kubelet'), EVENTS),
    create(
      'an Event about a node',
      core(namespace, 'events'),
      { ...key('key'), involvedObject: { ...about, apiVersion: 'v1', kind: 'Node' } },
      EVENTS,
    ),
    enter('a pod of another name', EXEC, 'web-1', HELPER),
    enter('a name that only contains one', EXEC, `x${mine}`, HELPER),
    enter('a pod in kube-system', EXEC, mine, HELPER, 'kube-system'),
    enter('a pod in the namespace of Berth', EXEC, mine, HELPER, releaseNamespace),
    enter('a shell', EXEC, mine, 'command=sh&container=session'),
    enter('an argument', EXEC, mine, `${HELPER}&command=--help`),
    enter('the helper behind another command', EXEC, mine, `command=env&${HELPER}`),
    enter('another container', EXEC, mine, HELPER.replace('session', 'runner')),
    enter('no container', EXEC, mine, HELPER.replace('&container=session', '')),
    enter('a terminal', EXEC, mine, `${HELPER}&tty=true`),
    ...refusedByRbac(place, [
      ['get', 'secrets'],
      ['get', `secrets/${release}-master-key`],
      ['create', 'pods'],
      ['delete', 'pods/mine'],
      ['patch', 'pods/mine'],
      ['get', 'pods/mine/attach?stdin=true&container=session'],
      ['create', 'pods/mine/portforward?ports=80'],
      ['get', 'configmaps/mine'],
      ['create', `serviceaccounts/${POWERFUL}/token`],
      ['patch', 'events/foreign'],
      ['delete', 'events/foreign'],
    ]),
  ];
}

/** Makes the attempt; returns what is wrong with the answer, undefined where it is as the attempt says. */
export async function fault(api: RawApi, place: Place, attempt: Attempt): Promise<string | undefined> {
  const { what, by, method, path, body, type } = attempt;
  const contentType = method === 'PATCH' ? `application/${type ?? 'merge'}-patch+json` : undefined;
  const answer = await api.call(method, path, {
    ...(body === undefined ? {} : { body }),
    ...(contentType ? { contentType } : {}),
  });
  const told = `${what}: ${answer.status} ${answer.text.slice(0, 400)}`;
  if (by === undefined) return answer.status < 300 ? undefined : told;
  return answer.status === 403 && isRefusedBy(by, answer, place) ? undefined : `${told} (not refused by ${by})`;
}

function isRefusedBy(by: string, { body }: RawAnswer, { release, releaseNamespace }: Place): boolean {
  const message = String(body?.message);
  if (by === 'RBAC') return /cannot \S+ resource/.test(message);
  return message.includes(`ValidatingAdmissionPolicy '${release}-${by}.${releaseNamespace}'`);
}
