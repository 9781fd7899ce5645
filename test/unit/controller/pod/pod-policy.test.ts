import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { Pod } from '../../../../core/kube/builtin.ts';
import { admissionPolicies } from '../../../../core/resources/admission.ts';
import { denialOf } from '../../../../local/apiserver/admission/policy.ts';
import type { Policy } from '../../../../local/apiserver/admission/types.ts';
import type { Rbac } from '../../../../local/apiserver/auth/rbac.ts';
import { podOf as aPodOf, CACHE_CLAIM, everyPod } from '../../../support/pods-of-classes.ts';

const CONTROLLER = 'system:serviceaccount:berth-system:berth-controller';

interface Exceptions {
  meshContainers?: string[];
  meshTokenAudiences?: string[];
  cacheClaims?: string[];
}

/** Reasons of the policy on the controller's pods against the creation of this one; undefined: it is allowed. */
function denied(pod: Pod | object, exceptions: Exceptions = {}): string | undefined {
  const list = (name: keyof Exceptions) => JSON.stringify(exceptions[name] ?? []);
  const policies = admissionPolicies({
    nameOf: (of) => of,
    namespace: 'berth-system',
    controller: CONTROLLER,
    api: 'api',
    masterKey: 'key',
    lease: 'lease',
    meshContainers: list('meshContainers'),
    meshTokenAudiences: list('meshTokenAudiences'),
    cacheClaims: list('cacheClaims'),
  }) as Policy[];
  const policy = policies.find(({ metadata }) => metadata.name === 'controller-pods') as Policy;
  const { metadata } = pod as Pod;
  const denial = denialOf(
    policy,
    {
      user: { username: CONTROLLER, groups: [] },
      operation: 'CREATE',
      kind: { group: '', version: 'v1', kind: 'Pod' },
      resource: { group: '', version: 'v1', resource: 'pods' },
      namespace: metadata.namespace ?? '',
      name: metadata.name as string,
      // As the API server has it after the service account's admission.
      object: JSON.parse(JSON.stringify({ ...pod, spec: { serviceAccountName: 'default', ...(pod as Pod).spec } })),
      dryRun: false,
    },
    undefined,
    {} as Rbac,
  );
  return denial?.message;
}

describe('the policy on the controller’s pods', () => {
  for (const [what, pod] of everyPod()) {
    test(`lets it create the pod of ${what}`, () => {
      assert.equal(denied(pod, { cacheClaims: [CACHE_CLAIM] }), undefined);
    });
  }

  test('refuses the cache of builds where the chart does not name its claim, and says what to do', () => {
    const spec = { environments: { cache: { claim: CACHE_CLAIM } } };
    const message = denied(aPodOf(spec, { build: 'Environment' }));
    assert.match(message ?? '', /: "uv-cache" is another\. .*name it in admissionPolicies\.cacheClaims of the chart$/);
  });
});

describe('a container that a service mesh adds', () => {
  /** The pod of a session with what Istio's webhook adds to it. */
  const meshed = (security: object = {}) => {
    const pod = aPodOf({}) as Pod & { spec: { volumes: object[]; initContainers?: object[] } };
    const dropped = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] }, runAsNonRoot: true };
    const redirect = {
      ...{ runAsUser: 0, runAsNonRoot: false, allowPrivilegeEscalation: false, privileged: false },
      capabilities: { drop: ['ALL'], add: ['NET_ADMIN', 'NET_RAW'] },
      ...security,
    };
    const serviceAccountToken = { path: 'istio-token', audience: 'istio-ca', expirationSeconds: 43200 };
    return {
      ...pod,
      spec: {
        ...pod.spec,
        initContainers: [{ name: 'istio-init', image: 'i', securityContext: redirect }],
        containers: [
          ...pod.spec.containers,
          { name: 'istio-proxy', image: 'i', securityContext: { ...dropped, runAsUser: 1337 } },
        ],
        volumes: [
          ...(pod.spec.volumes ?? []),
          { name: 'istio-envoy', emptyDir: { medium: 'Memory' } },
          { name: 'istio-podinfo', downwardAPI: { items: [] } },
          { name: 'istiod-ca-cert', configMap: { name: 'istio-ca-root-cert' } },
          { name: 'istio-token', projected: { sources: [{ serviceAccountToken }] } },
        ],
      },
    };
  };
  const MESH = { meshContainers: ['istio-init', 'istio-proxy'], meshTokenAudiences: ['istio-ca'] };

  test('is refused unless the chart names it, with its name and where to name it', () => {
    assert.match(
      denied(meshed()) ?? '',
      /container "istio-init" may run as root\. .*in admissionPolicies\.meshContainers of the chart$/,
    );
  });

  test('may redirect the pod’s traffic and have a token for the mesh where the chart names both', () => {
    assert.equal(denied(meshed(), MESH), undefined);
    assert.match(denied(meshed(), { ...MESH, meshTokenAudiences: [] }) ?? '', /no service account token/);
    assert.match(denied(meshed(), { ...MESH, meshTokenAudiences: ['other'] }) ?? '', /no service account token/);
  });

  test('may not be privileged, gain privileges or have other capabilities, though the chart names it', () => {
    for (const [security, fault] of [
      [{ privileged: true }, /"istio-init" is privileged/],
      [{ allowPrivilegeEscalation: true }, /"istio-init" does not have allowPrivilegeEscalation: false/],
      [{ capabilities: { add: ['NET_ADMIN', 'SYS_ADMIN'] } }, /"istio-init" does not drop all capabilities/],
      [{ seccompProfile: { type: 'Unconfined' } }, /"istio-init" has no seccomp profile/],
    ] as const) {
      assert.match(denied(meshed(security), MESH) ?? 'allowed', fault);
    }
  });

  test('lets no other container run as root', () => {
    const pod = meshed();
    const [first, ...others] = pod.spec.containers;
    const spec = { ...pod.spec, containers: [{ ...first, securityContext: { runAsUser: 0 } }, ...others] };
    assert.match(denied({ ...pod, spec }, MESH) ?? '', /container "session" /);
  });
});
