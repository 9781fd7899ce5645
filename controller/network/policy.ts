import { isIPv6 } from 'node:net';
import type {
  NetworkPolicy,
  NetworkPolicyPeer as Peer,
  LabelSelector as PolicySelector,
  NetworkPolicyRule as Rule,
} from '../../core/kube/builtin.ts';
import {
  LABEL_MANAGED_BY,
  LABEL_NETWORK,
  MANAGED_BY,
  networkKey,
  networkPolicyName,
} from '../../core/resources/names.ts';
import { type Destination, type HttpProxy, type Network, PROXY_ADDRESS } from '../../core/resources/network.ts';
import type { LabelSelector } from '../../core/resources/schema.ts';
import { METADATA_SERVICES } from './metadata-services.ts';

const isOf = (family: 4 | 6) => (address: string) => isIPv6(address) === (family === 6);
const METADATA_ADDRESSES = METADATA_SERVICES.map(({ address }) => address);
const METADATA_IPV4 = METADATA_ADDRESSES.filter(isOf(4)).map(hostRange);
const METADATA_IPV6 = METADATA_ADDRESSES.filter(isOf(6)).map(hostRange);

const DNS_PORTS: NonNullable<Rule['ports']> = [
  { port: 53, protocol: 'UDP' },
  { port: 53, protocol: 'TCP' },
];

/**
 * Egress to the cluster's DNS, by the labels that every distribution uses; a cache on the nodes' own network needs an
 * entry in `allow`.
 */
const DNS: Rule = {
  to: [
    {
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'kube-system' } },
      podSelector: { matchLabels: { 'k8s-app': 'kube-dns' } },
    },
  ],
  ports: DNS_PORTS,
};

/**
 * Egress to all pods and addresses. Some network plugins do not count the cluster's own pods to any range of addresses.
 */
const OPEN: Rule = {
  to: [
    { ipBlock: { cidr: '0.0.0.0/0', except: METADATA_IPV4 } },
    { ipBlock: { cidr: '::/0', except: METADATA_IPV6 } },
    { namespaceSelector: {} },
  ],
};

/** Egress to the DNS servers that have the address of a metadata service. The service itself has other ports. */
const METADATA_DNS: Rule = {
  to: METADATA_SERVICES.filter(({ hasDns }) => hasDns).map(({ address }) => ({
    ipBlock: { cidr: hostRange(address) },
  })),
  ports: DNS_PORTS,
};

/**
 * Builds the NetworkPolicy for a class's pods in a namespace. It allows no ingress: attach and log go through the
 * kubelet.
 */
export function networkPolicy(namespace: string, sessionClass: string, network: Network | undefined): NetworkPolicy {
  const key = networkKey(sessionClass);
  const egress = egressOf(network);
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: {
      name: networkPolicyName(sessionClass),
      namespace,
      labels: { [LABEL_MANAGED_BY]: MANAGED_BY, [LABEL_NETWORK]: key },
    },
    spec: {
      podSelector: { matchLabels: { [LABEL_NETWORK]: key } },
      policyTypes: ['Ingress', 'Egress'],
      // The API server leaves out empty lists, and so does this, to compare as equal.
      ...(egress.length > 0 ? { egress } : {}),
    },
  };
}

function egressOf({ mode, allow = [], dns = true, proxy }: Network = { mode: 'None' }): Rule[] {
  if (mode === 'None') return [];
  if (mode === 'Open') return [OPEN, METADATA_DNS];
  return [...(dns ? [DNS] : []), ...allow.map(ruleOf), ...(proxy ? [proxyRule(proxy)] : [])];
}

function ruleOf({ ports = [], ...peer }: Destination): Rule {
  return {
    to: [peerOf(peer)],
    ...(ports.length > 0
      ? { ports: ports.map(({ port, endPort, protocol }) => ({ port, ...(endPort ? { endPort } : {}), protocol })) }
      : {}),
  };
}

function proxyRule({ url: text, noProxy: _none, ports, ...peer }: HttpProxy): Rule {
  const url = new URL(text);
  const named = peer.cidr || peer.namespaceSelector || peer.podSelector;
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80));
  const at = named || !new RegExp(PROXY_ADDRESS).test(text) ? peer : { cidr: hostRange(url.hostname) };
  return ruleOf({ ...at, ports: ports ?? [{ port, protocol: 'TCP' }] });
}

/** CIDR range of a URL's host that is an IP address. */
function hostRange(host: string): string {
  const address = host.replace(/^\[|\]$/g, '');
  return isIPv6(address) ? `${address}/128` : `${address}/32`;
}

function peerOf({ cidr, except = [], namespaceSelector, podSelector }: Omit<Destination, 'ports'>): Peer {
  if (cidr) return { ipBlock: { cidr, ...(except.length > 0 ? { except } : {}) } };
  return {
    ...(namespaceSelector ? { namespaceSelector: selectorOf(namespaceSelector) } : {}),
    ...(podSelector ? { podSelector: selectorOf(podSelector) } : {}),
  };
}

function selectorOf({ matchLabels = {}, matchExpressions = [] }: LabelSelector): PolicySelector {
  return {
    ...(Object.keys(matchLabels).length > 0 ? { matchLabels } : {}),
    ...(matchExpressions.length > 0
      ? {
          matchExpressions: matchExpressions.map(({ key, operator, values = [] }) => ({
            key,
            operator,
            ...(values.length > 0 ? { values } : {}),
          })),
        }
      : {}),
  };
}
