import { contractSuite } from '../contract/suite.ts';
import { kubectl } from './support/cluster.ts';

const decode = (text: string) => Buffer.from(text, 'base64').toString();

contractSuite('a real kube-apiserver', async () => {
  const { clusters, users } = JSON.parse(await kubectl(['config', 'view', '--raw', '-o', 'json']));
  const { cluster } = clusters[0];
  const { user } = users[0];
  const certificate = { cert: decode(user['client-certificate-data']), key: decode(user['client-key-data']) };
  const connection = { url: cluster.server, ca: decode(cluster['certificate-authority-data']), certificate };
  return { connection, close: async () => {} };
});
