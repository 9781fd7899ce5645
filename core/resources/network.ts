import * as z from 'zod';
import { labelSelector, rules } from './schema.ts';

const OCTET = '(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])';
const IPV4 = `${OCTET}(\\.${OCTET}){3}`;

const cidr = () =>
  z
    .string()
    .max(64)
    .regex(
      new RegExp(
        `^(${IPV4}/(3[0-2]|[12]?[0-9])|[0-9a-fA-F]{0,4}(:[0-9a-fA-F]{0,4}){2,7}/(12[0-8]|1[01][0-9]|[1-9]?[0-9]))$`,
      ),
      'must be a range of addresses, for example 10.0.0.0/8 or fd00::/8',
    );

const port = () => z.int32().min(1).max(65_535);

const networkPort = z
  .strictObject({
    port: port().describe(
      'Port. For a Service, the port of its pods: a NetworkPolicy sees the final destination of a packet.',
    ),
    endPort: port().optional().describe('Last port of a range that begins with port.'),
    protocol: z.enum(['TCP', 'UDP', 'SCTP']).default('TCP').describe('Protocol of the port. Default TCP.'),
  })
  .meta(
    rules({
      rule: '!has(self.endPort) || self.endPort >= self.port',
      message: 'must not be lower than port',
      fieldPath: '.endPort',
    }),
  );

const peer = {
  cidr: cidr().optional().describe('Addresses, for example 10.1.0.0/16.'),
  except: z.array(cidr()).max(32).optional().describe('Addresses within cidr that stay blocked.'),
  namespaceSelector: labelSelector
    .optional()
    .describe('Selects namespaces by labels. Without it podSelector selects pods of the session’s own namespace.'),
  podSelector: labelSelector.optional().describe('Selects pods by labels.'),
  ports: z.array(networkPort).max(32).optional(),
};

const exclusive = {
  rule: '!has(self.cidr) || (!has(self.namespaceSelector) && !has(self.podSelector))',
  message: 'set either cidr or selectors; write two entries for both',
};
const exceptOfCidr = { rule: '!has(self.except) || has(self.cidr)', message: 'needs a cidr', fieldPath: '.except' };

const destination = z.strictObject({ ...peer, ports: peer.ports.describe('Ports. Default: all ports.') }).meta(
  rules(exclusive, exceptOfCidr, {
    rule: 'has(self.cidr) || has(self.namespaceSelector) || has(self.podSelector)',
    message: 'say where to: set cidr, namespaceSelector or podSelector; 0.0.0.0/0 is every IPv4 address',
  }),
);
export type Destination = z.infer<typeof destination>;

/** Pattern of a proxy URL with an address. A name is not enough, because a NetworkPolicy knows addresses only. */
export const PROXY_ADDRESS = `^https?://(${IPV4}|\\[[0-9a-fA-F:]+\\])(:[0-9]+)?/?$`;

const proxy = z
  .strictObject({
    url: z
      .string()
      .max(512)
      .regex(
        /^https?:\/\/(\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?\/?$/,
        'must be a URL, for example http://proxy.egress.svc:3128',
      )
      .describe('Value of HTTP_PROXY and HTTPS_PROXY. It must not contain credentials, as every agent can read it.'),
    noProxy: z
      .array(z.string().min(1).max(253))
      .max(64)
      .optional()
      .describe('Hosts and domains added to NO_PROXY, which are reached directly if allow permits them.'),
    ...peer,
    ports: peer.ports.describe(
      'Ports of the proxy. Default: the port of the URL. Set this if the proxy is a Service whose pods use another port.',
    ),
  })
  .meta(rules(exclusive, exceptOfCidr));
export type HttpProxy = z.infer<typeof proxy>;

/** Network access of a session's pod. No incoming connection is ever allowed. */
export const network = z
  .strictObject({
    mode: z
      .enum(['None', 'AllowList', 'Open'])
      .default('None')
      .describe(
        'Destinations that pods may reach. None: nothing. AllowList: the destinations in allow and proxy, and the cluster’s DNS. Open: everything except the metadata service of clouds. No mode lets anything reach the pods. Default None.',
      ),
    allow: z
      .array(destination)
      .max(32)
      .meta({ 'x-kubernetes-list-type': 'atomic' })
      .optional()
      .describe('Destinations that pods may reach with AllowList, in addition to the cluster’s DNS and the proxy.'),
    dns: z
      .boolean()
      .optional()
      .describe('Lets AllowList allow the cluster’s DNS, the pods with the label k8s-app=kube-dns. Default true.'),
    proxy: proxy.optional().describe('HTTP proxy. The agent’s environment names it.'),
  })
  .meta(
    rules(
      { rule: "self.mode == 'AllowList' || !has(self.allow)", message: 'needs mode AllowList', fieldPath: '.allow' },
      { rule: "self.mode == 'AllowList' || !has(self.dns)", message: 'needs mode AllowList', fieldPath: '.dns' },
      {
        rule: "self.mode != 'None' || !has(self.proxy)",
        message: 'needs mode AllowList, or Open',
        fieldPath: '.proxy',
      },
      {
        rule: `self.mode != 'AllowList' || !has(self.proxy) || has(self.proxy.cidr) || has(self.proxy.namespaceSelector) || has(self.proxy.podSelector) || self.proxy.url.matches('${PROXY_ADDRESS.replaceAll('\\', '\\\\')}')`,
        message:
          'a NetworkPolicy knows addresses and pods, not names: say where the proxy is by podSelector, namespaceSelector or cidr',
        fieldPath: '.proxy',
      },
    ),
  );
export type Network = z.infer<typeof network>;
