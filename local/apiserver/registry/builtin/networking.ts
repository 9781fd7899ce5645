import { BlockList, isIPv6 } from 'node:net';
import { type FieldError, forbiddenField, invalid, required } from '../../fields.ts';
import { at, isObject } from '../../object.ts';
import { ageColumn, builtin, nameColumn } from './define.ts';
import { builtinSchema } from './schemas.ts';

const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

/**
 * NetworkPolicies as objects without effect: the pods of this cluster are processes of the machine and share its
 * network.
 */
export const networkPolicies = builtin({
  group: 'networking.k8s.io',
  plural: 'networkpolicies',
  kind: 'NetworkPolicy',
  schema: builtinSchema('V1NetworkPolicy'),
  shortNames: ['netpol'],
  generation: true,
  columns: [nameColumn, { name: 'Pod-Selector', type: 'string', cell: ({ spec }) => podSelector(spec) }, ageColumn],
  prepareCreate: ({ spec }) => fillIn(spec),
  prepareUpdate: ({ spec }) => fillIn(spec),
  validate({ spec }) {
    const errors: FieldError[] = [];
    for (const [kind, peers] of [
      ['ingress', 'from'],
      ['egress', 'to'],
    ] as const) {
      list(at(spec, kind)).forEach((rule, i) => {
        list(at(rule, peers)).forEach((peer, j) => {
          errors.push(...peerErrors(peer, `spec.${kind}[${i}].${peers}[${j}]`));
        });
      });
    }
    return errors;
  },
});

function peerErrors(peer: unknown, path: string): FieldError[] {
  if (!isObject(peer) || Object.keys(peer).length === 0) return [required(path, 'must specify a peer')];
  if (!isObject(peer.ipBlock)) return [];
  if (Object.keys(peer).length > 1) return [forbiddenField(path, 'may not specify both ipBlock and another peer')];
  const { cidr } = peer.ipBlock;
  if (!cidr) return [required(`${path}.ipBlock.cidr`)];
  return list(peer.ipBlock.except).flatMap((except, i) =>
    isWithin(String(except), String(cidr))
      ? []
      : [invalid(`${path}.ipBlock.except[${i}]`, except, 'must be a strict subset of `cidr`')],
  );
}

function isWithin(inner: string, outer: string): boolean {
  const [[address = '', length], [net = '', prefix]] = [inner.split('/'), outer.split('/')];
  const family = isIPv6(net) ? 'ipv6' : 'ipv4';
  const block = new BlockList();
  block.addSubnet(net, Number(prefix), family);
  return isIPv6(address) === isIPv6(net) && block.check(address, family) && Number(length) > Number(prefix);
}

function fillIn(spec: unknown): void {
  if (!isObject(spec)) return;
  spec.podSelector ??= {};
  const rules = [...list(spec.ingress), ...list(spec.egress)];
  for (const port of rules.flatMap((rule) => list(at(rule, 'ports')))) if (isObject(port)) port.protocol ??= 'TCP';
  spec.policyTypes ??= list(spec.egress).length > 0 ? ['Ingress', 'Egress'] : ['Ingress'];
}

function podSelector(spec: unknown): string {
  const labels = at(spec, 'podSelector', 'matchLabels');
  const pairs = isObject(labels) ? Object.entries(labels).map(([key, value]) => `${key}=${value}`) : [];
  return pairs.join(',') || '<none>';
}
