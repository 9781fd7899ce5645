import { type Wheel, wheelFile } from '../../support/package-index.ts';
import { apply, until } from './cluster.ts';
import { runnerImage } from './images.ts';

/** Serves the wheels of its folder as a simple index. */
const SERVER = `
const { createServer } = require('node:http');
const { readdirSync, readFileSync } = require('node:fs');
const { createHash } = require('node:crypto');
const digest = (file) => createHash('sha256').update(readFileSync('/wheels/' + file)).digest('hex');
createServer((request, response) => {
  const [, , name, file] = decodeURIComponent(request.url).split('/');
  const files = readdirSync('/wheels').filter((one) => one.endsWith('.whl') && one.split('-')[0].replaceAll('_', '-') === name);
  if (files.length === 0) response.writeHead(404).end();
  else if (file) response.writeHead(200).end(readFileSync('/wheels/' + file));
  else {
    const links = files.map((one) => '<a href="' + one + '#sha256=' + digest(one) + '">' + one + '</a>');
    response.writeHead(200, { 'content-type': 'text/html' }).end(links.join('\\n'));
  }
}).listen(8080);
`;

/** Settings of a class whose sessions reach the index, and nothing else. */
export interface IndexSettings {
  environments: { index: string };
  sandbox: { network: object };
}

/** Starts a pod that serves the wheels as a package index. */
export async function startIndex(namespace: string, wheels: readonly Wheel[]): Promise<IndexSettings> {
  const files = wheels.map(wheelFile);
  const binaryData = Object.fromEntries(files.map(({ file, data }) => [file, data.toString('base64')]));
  const security = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } };
  await apply(
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'wheels', namespace }, binaryData },
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'index', namespace },
      spec: {
        securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: 'RuntimeDefault' } },
        containers: [
          {
            ...{ name: 'index', image: runnerImage, command: ['/usr/local/bin/node', '-e', SERVER] },
            securityContext: security,
            volumeMounts: [{ name: 'wheels', mountPath: '/wheels' }],
            readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
          },
        ],
        volumes: [{ name: 'wheels', configMap: { name: 'wheels' } }],
      },
    },
  );
  const { status } = await until(namespace, 'pod', 'index', ({ status }) => status.containerStatuses?.[0]?.ready);
  const { podIP } = status;
  return {
    environments: { index: `http://${podIP}:8080/simple` },
    sandbox: { network: { mode: 'AllowList', allow: [{ cidr: `${podIP}/32`, ports: [{ port: 8080 }] }] } },
  };
}
