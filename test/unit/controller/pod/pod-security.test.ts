import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { effective, isProblem } from '../../../../controller/settings/effective.ts';
import type { Container, Pod } from '../../../../core/kube/builtin.ts';
import { customResourceDefinition, kinds } from '../../../../core/resources/crd.ts';
import { OVERRIDABLE } from '../../../../core/resources/overridable.ts';
import { sessionClassSpec } from '../../../../core/resources/sessionclass.ts';
import { celErrors } from '../../../../local/apiserver/validation/cel.ts';
import type { Schema } from '../../../../local/apiserver/validation/schema.ts';
import { CLASS_OPTIONS, podOf } from '../../../support/pods-of-classes.ts';
import { aClass, aSession, aWorld } from '../../../support/world.ts';

const classKind = kinds.find(({ kind }) => kind === 'SessionClass')!;
// biome-ignore lint/suspicious/noExplicitAny: a document
const classSchema = (customResourceDefinition(classKind) as any).spec.versions[0].schema.openAPIV3Schema as Schema;

/** Errors of the SessionClass's rules for a class with this spec. */
const classErrors = (spec: object) => celErrors({ spec: sessionClassSpec.parse(spec) }, classSchema, undefined);

type Security = {
  allowPrivilegeEscalation?: boolean;
  capabilities?: { drop?: string[]; add?: string[] };
  privileged?: boolean;
  procMount?: string;
  readOnlyRootFilesystem?: boolean;
  runAsNonRoot?: boolean;
  runAsUser?: number;
  seLinuxOptions?: object;
  seccompProfile?: { type: string };
  windowsOptions?: object;
  appArmorProfile?: { type: string };
  sysctls?: object[];
};

const VOLUMES = [
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'image',
  'persistentVolumeClaim',
  'projected',
  'secret',
];

/** Every rule of the restricted Pod Security Standard, as k8s.io/pod-security-admission checks it, that the pod breaks. */
function broken(pod: Pod): string[] {
  const found: string[] = [];
  const spec = pod.spec as Pod['spec'] & Record<string, unknown>;
  const ofPod = (spec.securityContext ?? {}) as Security;
  const must = (holds: boolean, rule: string) => {
    if (!holds) found.push(rule);
  };
  must(!spec.hostNetwork && !spec.hostPID && !spec.hostIPC, 'host namespaces');
  must(!spec.ephemeralContainers, 'ephemeral containers are somebody else’s');
  must(!ofPod.sysctls && !ofPod.seLinuxOptions && !ofPod.windowsOptions && !ofPod.appArmorProfile, 'host settings');
  for (const key of Object.keys(pod.metadata.annotations ?? {})) {
    must(!/apparmor\.security|seccomp\.security/.test(key), `annotation ${key}`);
  }
  for (const volume of spec.volumes ?? []) {
    const types = Object.keys(volume).filter((key) => key !== 'name');
    must(types.length === 1 && VOLUMES.includes(types[0] as string), `volume ${volume.name} of type ${types}`);
  }
  for (const container of [...(spec.initContainers ?? []), ...spec.containers] as (Container &
    Record<string, unknown>)[]) {
    const own = (container.securityContext ?? {}) as Security;
    const seccomp = own.seccompProfile ?? ofPod.seccompProfile;
    const user = own.runAsUser ?? ofPod.runAsUser;
    const of = (rule: string) => `${rule} of ${container.name}`;
    must(own.allowPrivilegeEscalation === false, of('allowPrivilegeEscalation'));
    must(Boolean(own.capabilities?.drop?.includes('ALL')) && !own.capabilities?.add?.length, of('capabilities'));
    must(!own.privileged && (own.procMount ?? 'Default') === 'Default', of('privileged'));
    must((own.runAsNonRoot ?? ofPod.runAsNonRoot) === true && user !== undefined && user > 0, of('user'));
    must(seccomp?.type === 'RuntimeDefault', of('seccomp'));
    must(!own.seLinuxOptions && !own.windowsOptions && !own.appArmorProfile, of('host settings'));
    must(!container.ports && !container.lifecycle && !container.livenessProbe, of('host ports and probes'));
  }
  return found;
}

describe('a session’s pod', () => {
  for (const [option, { spec, session = {} }] of Object.entries(CLASS_OPTIONS)) {
    test(`satisfies the restricted Pod Security Standard with ${option}`, () => {
      const own = { agent: { command: ['agent'] }, ...session };
      assert.deepEqual(broken(podOf(spec, own)), []);
    });
  }

  test('with every option at once satisfies it too', () => {
    const sandbox = { readOnlyRootFilesystem: false, network: { mode: 'Open' } };
    const all = Object.assign({}, ...Object.values(CLASS_OPTIONS).map(({ spec }) => spec), { sandbox });
    assert.deepEqual(broken(podOf(all)), []);
  });

  const profiles = {
    'container.apparmor.security.beta.kubernetes.io/session': 'unconfined',
    'container.seccomp.security.alpha.kubernetes.io/session': 'unconfined',
    'seccomp.security.alpha.kubernetes.io/pod': 'unconfined',
  };

  test('is not taken out of its profiles by an annotation of a class that was stored before these were refused', () => {
    const pod = podOf({ podMetadata: { annotations: { ...profiles, 'example.com/cost': 'x' } } });
    assert.deepEqual(broken(pod), []);
    assert.deepEqual(pod.metadata.annotations, { 'example.com/cost': 'x' });
  });

  for (const [key, value] of Object.entries(profiles)) {
    test(`cannot be given the annotation ${key}: the class is refused by the field`, () => {
      const refusals = classErrors({ podMetadata: { annotations: { [key]: value } } });
      assert.deepEqual(
        refusals.map(({ field }) => field),
        ['spec.podMetadata.annotations'],
      );
      assert.match(refusals[0]?.message ?? '', /AppArmor or seccomp profile/);
      assert.deepEqual(
        classErrors({ podMetadata: { annotations: { [`example.com/${key.split('/')[1]}`]: value } } }),
        [],
      );
    });
  }

  test('has no token, no service links, no way up, and a root that cannot be written unless the class says so', () => {
    const { spec } = podOf({});
    assert.equal(spec.automountServiceAccountToken, false);
    assert.equal(spec.enableServiceLinks, false);
    assert.equal(spec.serviceAccountName, undefined);
    assert.equal(spec.restartPolicy, 'Never');
    const rootOf = (pod: Pod) =>
      (pod.spec.containers[0]?.securityContext as Security | undefined)?.readOnlyRootFilesystem;
    assert.equal(rootOf(podOf({})), true);
    assert.equal(rootOf(podOf({ sandbox: { readOnlyRootFilesystem: false } })), false);
  });

  test('has no volume when its class has the scratch directories in the image', () => {
    const { containers, volumes } = podOf({ sandbox: { readOnlyRootFilesystem: false, scratch: 'Image' } }).spec;
    assert.deepEqual(volumes, []);
    assert.deepEqual(containers[0]?.volumeMounts, []);
  });

  const sandbox = { readOnlyRootFilesystem: false, scratch: 'Image' } as const;
  for (const [what, spec] of Object.entries({
    'a read-only root': { sandbox: { scratch: 'Image' as const } },
    'an injected runner': { runner: 'Injected' as const, image: 'i', sandbox },
    'no runner': { runner: 'None' as const, image: 'i', sandbox },
  })) {
    test(`cannot have the scratch directories in the image with ${what}: the class is refused by the field`, () => {
      const refusals = classErrors(spec);
      assert.deepEqual(
        refusals.map(({ field }) => field),
        ['spec.sandbox'],
      );
      assert.match(refusals[0]?.message ?? '', /use Volumes/);
    });
  }

  test('can write its work and state below /berth, and /tmp, its home', () => {
    const { containers, volumes } = podOf({}).spec;
    const mounted = Object.fromEntries((containers[0]?.volumeMounts ?? []).map((mount) => [mount.mountPath, mount]));
    for (const path of ['/berth', '/tmp']) {
      const mount = mounted[path];
      assert.ok(mount && !mount.readOnly, path);
      assert.deepEqual(volumes?.find(({ name }) => name === mount.name)?.emptyDir, { sizeLimit: '2Gi' });
    }
  });

  test('is marked and placed as its class says', () => {
    const placement = {
      runtimeClassName: 'gvisor',
      hostUsers: false,
      nodeSelector: { pool: 'agents' },
      tolerations: [{ key: 'agents', operator: 'Exists' as const }],
      affinity: { podAntiAffinity: {} },
      priorityClassName: 'low',
    };
    const podMetadata = { labels: { team: 'a' }, annotations: { 'example.com/cost': 'x' } };
    const { metadata, spec } = podOf({ ...placement, podMetadata });
    const { runtimeClassName, hostUsers, nodeSelector, tolerations, affinity, priorityClassName } = spec;
    assert.deepEqual(
      { runtimeClassName, hostUsers, nodeSelector, tolerations, affinity, priorityClassName },
      placement,
    );
    assert.equal(metadata.labels?.team, 'a');
    assert.deepEqual(metadata.annotations, podMetadata.annotations);
    const plain = podOf({});
    assert.equal(plain.metadata.annotations, undefined);
    for (const field of Object.keys(placement)) assert.ok(!(field in plain.spec), field);
  });

  test('keeps Berth’s own labels, whatever its class gives', () => {
    const own = podOf({}).metadata.labels ?? {};
    const forged = Object.fromEntries(Object.keys(own).map((key) => [key, 'forged']));
    assert.deepEqual(podOf({ podMetadata: { labels: forged } }).metadata.labels, own);
    assert.equal(own['berth.dev/network'], 'default', 'its NetworkPolicy selects it');
  });
});

describe('a class that is for some namespaces', () => {
  const selected = { namespaceSelector: { matchLabels: { agents: 'yes' } }, overrides: [...OVERRIDABLE] };
  const settings = (labels?: Record<string, string>) =>
    effective(aSession(), aClass(selected), aWorld().installation, labels);

  test('is refused to sessions of others', () => {
    const refused = settings({ agents: 'no' });
    assert.ok(isProblem(refused));
    assert.equal(refused.reason, 'NotAllowed');
    assert.match(refused.message, /^spec\.class: the class is not for namespace "team".*\(class "default"\)$/);
    assert.ok(isProblem(settings({})));
  });

  test('is given to sessions of those', () => {
    assert.ok(!isProblem(settings({ agents: 'yes', more: 'x' })));
  });

  test('refuses nothing on account of labels that are not known: its sessions wait', () => {
    assert.ok(!isProblem(settings()));
  });
});
