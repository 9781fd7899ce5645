import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { request } from 'node:https';
import { text } from 'node:stream/consumers';
import { afterAll, describe, test } from 'vitest';
import { certificate } from '../../../local/apiserver/auth/certificate.ts';
import { eventually } from '../../support/eventually.ts';
import { type Any, apply, get, kubectl, releaseNamespace } from '../support/cluster.ts';
import { type PortForward, portForward } from '../support/port-forward.ts';
import { install } from '../support/release.ts';

describe('the HTTP API over TLS', () => {
  let forward: PortForward | undefined;
  const secret = { namespace: releaseNamespace, name: 'api-tls' };

  /** Writes the Secret of a certificate that signs itself. Resolves with the certificate. */
  async function writeCertificate(name: string): Promise<string> {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const from = Date.now() - 3_600_000;
    const cert = certificate({ privateKey, publicKey, name, from, to: from + 7 * 86_400_000 });
    const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    await apply({
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'kubernetes.io/tls',
      metadata: secret,
      stringData: { 'tls.crt': cert, 'tls.key': key },
    });
    return cert;
  }

  afterAll(async () => {
    forward?.end();
    await install();
    await kubectl(['delete', 'secret', secret.name, '-n', releaseNamespace, '--ignore-not-found']);
  });

  test('its pod is ready by HTTPS, and serves a renewed certificate without a restart', async () => {
    const first = await writeCertificate('first');
    await install({ 'api.tls': { secretName: secret.name } });
    const { port, end } = await portForward(443);
    forward = { port, end };
    /** Resolves with the answer of a server that has this certificate; rejects for another. */
    const readyz = async (ca: string) => {
      const asked = request({ host: '127.0.0.1', port, path: '/readyz', ca, agent: false }).end();
      const [answer] = await once(asked, 'response');
      return text(answer);
    };
    assert.equal(await readyz(first), 'ok\n');
    const api = ['-l', 'app.kubernetes.io/component=api'];
    const pods = async () => {
      const { items } = await get(['pods', '-n', releaseNamespace, ...api]);
      return items.map(({ metadata, status }: Any) => `${metadata.uid} ${status.containerStatuses[0].restartCount}`);
    };
    const before = await pods();
    const second = await writeCertificate('second');
    // A kubelet renews the files of a Secret when it looks at the pod: about every minute, and at once where the pod has changed.
    const look = (time: string) =>
      kubectl(['annotate', 'pods', ...api, '-n', releaseNamespace, `example.com/look=${time}`, '--overwrite']);
    const renewed = async () => {
      await look(new Date().toISOString());
      return (await readyz(second)) === 'ok\n';
    };
    await eventually(renewed, { timeoutMs: 300_000, everyMs: 1_000, what: 'the renewed certificate is served' });
    await assert.rejects(readyz(first), /self-signed certificate|unable to verify/);
    assert.deepEqual(await pods(), before);
  });
});
