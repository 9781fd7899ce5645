import { VERSION } from '../../core/program/version.ts';
import { admissionPolicies } from '../../core/resources/admission.ts';
import type { KubeCluster } from '../cluster/cluster.ts';
import { error, type Found, needing, ok, some, warning } from './finding.ts';
import { type Installed, leaseNameOf, masterKeyOf, requireInstalled } from './installation.ts';

interface Named {
  kind?: string;
  metadata: { name: string };
}
interface Policy extends Named {
  spec: {
    failurePolicy?: string;
    matchConstraints?: unknown;
    matchConditions?: Expression[];
    validations?: Expression[];
  };
  status?: { typeChecking?: { expressionWarnings?: { fieldRef: string; warning: string }[] } };
}
interface Binding extends Named {
  spec: { policyName: string; validationActions?: string[] };
}
interface Expression {
  expression: string;
}

const GROUP = '/apis/admissionregistration.k8s.io/v1';

/** Compares the admission policies of each installation with those of this release, and sees that each is bound. */
export async function policiesFound(
  installed: readonly Installed[],
  { api }: KubeCluster,
  signal: AbortSignal,
): Promise<Found[]> {
  requireInstalled(installed);
  const list = async <T>(plural: string): Promise<T[]> => {
    const read = api.raw('GET', `${GROUP}/${plural}`, { signal });
    return ((await needing(`list ${plural}.admissionregistration.k8s.io`, read)) as { items: T[] }).items;
  };
  const [policies, bindings] = await Promise.all([
    list<Policy>('validatingadmissionpolicies'),
    list<Binding>('validatingadmissionpolicybindings'),
  ]);
  return installed.flatMap((each) => policiesOf(each, policies, bindings));
}

function policiesOf(installed: Installed, policies: readonly Policy[], bindings: readonly Binding[]): Found[] {
  const { namespace, name, release, accounts } = installed;
  const expected = admissionPolicies({
    nameOf: (of) => `${name}-${of}.${namespace}`,
    namespace,
    ...accounts,
    masterKey: masterKeyOf(installed),
    lease: leaseNameOf(installed),
    // Lists of the installation, which stand in variables and are not compared.
    ...{ meshContainers: '[]', meshTokenAudiences: '[]', cacheClaims: '[]' },
  })
    .map((object) => object as Named)
    .filter(({ kind }) => kind === 'ValidatingAdmissionPolicy') as Policy[];
  const act = `put them back: helm upgrade ${name} --namespace ${namespace} (docs/install.md#upgrading)`;
  const found = expected.map((policy) => ({
    policy,
    present: policies.find(({ metadata }) => metadata.name === policy.metadata.name),
    binding: bindings.find(({ spec }) => spec.policyName === policy.metadata.name),
  }));
  if (found.every(({ present }) => !present)) {
    return [
      warning(
        `${namespace}/${name} has no admission policies: a controller that is taken over can change any pod, and requesters are not checked`,
        'set admissionPolicies.enabled, unless other means hold the controller’s account to its pods (docs/threat-model.md)',
      ),
    ];
  }
  const problems = found.flatMap(({ policy, present, binding }): Found[] => {
    const { name } = policy.metadata;
    if (!present) return [error(`ValidatingAdmissionPolicy ${name} is missing`, act)];
    if (!binding) return [error(`ValidatingAdmissionPolicy ${name} has no binding: it is not in force`, act)];
    if (!binding.spec.validationActions?.includes('Deny')) {
      const actions = binding.spec.validationActions?.join(', ') ?? 'none';
      return [error(`ValidatingAdmissionPolicyBinding ${binding.metadata.name} does not deny: ${actions}`, act)];
    }
    if (present.spec.failurePolicy === 'Ignore') {
      return [error(`ValidatingAdmissionPolicy ${name} ignores its failures`, act)];
    }
    const differs = release === VERSION && !isSame(policy, present);
    const others = differs ? [error(`ValidatingAdmissionPolicy ${name} is not that of release ${VERSION}`, act)] : [];
    const warnings = present.status?.typeChecking?.expressionWarnings ?? [];
    const checked = warnings.map(({ fieldRef, warning: text }) => {
      const message = `ValidatingAdmissionPolicy ${name}: the API server warns of ${fieldRef}: ${text.split('\n')[0]}`;
      return warning(
        message,
        'see that Kubernetes and Berth are of supported versions; the policy may refuse too much',
      );
    });
    return [...others, ...checked];
  });
  if (problems.length > 0) return problems;
  const names = some(
    expected.map(({ metadata }) => metadata.name.replace(`.${namespace}`, '')),
    expected.length,
  );
  const compared = release === VERSION ? `, bound, and those of release ${VERSION}` : ' and bound';
  return [ok(`the admission policies of ${namespace}/${name} are there${compared}: ${names}`)];
}

/** True where the policies judge the same requests by the same expressions. */
function isSame({ spec: one }: Policy, { spec: other }: Policy): boolean {
  const texts = (list: Expression[] | undefined) => (list ?? []).map(({ expression }) => expression.trim());
  return (
    JSON.stringify(texts(one.validations)) === JSON.stringify(texts(other.validations)) &&
    JSON.stringify(texts(one.matchConditions)) === JSON.stringify(texts(other.matchConditions))
  );
}
