/** Service of a cloud that gives credentials of the node, or of a pod identity, to any client. */
interface MetadataService {
  address: string;
  /** Clouds that have it there, in words for people. */
  cloud: string;
  /** True where the same address has the DNS server of pods, or of the cluster's DNS: its port 53 stays open. */
  hasDns: boolean;
}

const service = (address: string, cloud: string, hasDns = false): MetadataService => ({ address, cloud, hasDns });

/**
 * Single addresses, not the link-local range: that has the DNS caches of nodes, too. OpenStack's fe80::a9fe:a9fe is not among them: no pod reaches
 * the link of its node. Where Calico enforces policies on GKE, nodes
 * pass requests for the first address on to the second before Calico judges them. The DNS server of pods on GKE with Cloud DNS is
 * at the address of the metadata service (tektoncd/operator#4000). On Azure, the WireServer has the settings and certificates of
 * the node, and the DNS server that the cluster's DNS asks.
 */
export const METADATA_SERVICES: readonly MetadataService[] = [
  service('169.254.169.254', 'most clouds', true),
  service('169.254.169.252', 'GKE with Calico'),
  service('169.254.170.2', 'Amazon ECS'),
  service('169.254.170.23', 'EKS Pod Identity'),
  service('168.63.129.16', 'Azure (WireServer)', true),
  service('100.100.100.200', 'Alibaba Cloud'),
  service('100.96.0.96', 'Volcengine, BytePlus'),
  service('100.80.80.80', 'UCloud'),
  service('169.254.0.23', 'Tencent Cloud'),
  service('169.254.42.42', 'Scaleway'),
  service('fd00:ec2::254', 'Amazon EC2'),
  service('fd00:ec2::23', 'EKS Pod Identity'),
  service('fd20:ce::254', 'Google Cloud', true),
  service('fd00:100::100:200', 'Alibaba Cloud'),
  service('fd00:42::42', 'Scaleway'),
  service('fd00:c1::a9fe:a9fe', 'Oracle Cloud'),
  service('fd00:a9fe:a9fe::1', 'Akamai (Linode)'),
];
