import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { KINDS, MANIFESTS, peerObjects } from '../../bench/peer/build.ts';

/** Checkout with manifests in the form of agent-sandbox's. */
function checkout(): string {
  const folder = mkdtempSync(join(tmpdir(), 'berth-peer-'));
  mkdirSync(join(folder, 'k8s/crds'), { recursive: true });
  const kind = `kind: CustomResourceDefinition
metadata: {name: any}
spec:
  versions: [{name: v1beta1, storage: true}, {name: v1alpha1, storage: false}]
  conversion: {strategy: Webhook}
`;
  for (const name of KINDS) writeFileSync(join(folder, 'k8s/crds', name), kind);
  const controller = `---
kind: Namespace
---

kind: Deployment
spec: {template: {spec: {containers: [{name: controller, image: "ko://any", args: [--leader-elect=true]}]}}}
---
`;
  for (const name of MANIFESTS) writeFileSync(join(folder, 'k8s', name), controller);
  return folder;
}

test('agent-sandbox’s kinds keep their stored version without the webhook, and its controller runs the built image', async (t) => {
  const folder = checkout();
  t.onTestFinished(() => rmSync(folder, { recursive: true }));
  const { kinds, rest } = await peerObjects(folder);
  assert.deepEqual(
    kinds.map(({ spec }) => spec),
    KINDS.map(() => ({ versions: [{ name: 'v1beta1', storage: true }] })),
  );
  assert.deepEqual(
    rest.slice(0, 2).map(({ kind }) => kind),
    ['Namespace', 'Deployment'],
  );
  const [container] = rest[1].spec.template.spec.containers;
  expect(container).toMatchObject({ image: 'example/agent-sandbox:bench', imagePullPolicy: 'Never' });
  assert.ok(container.args.includes('--enable-webhook=false') && container.args.includes('--extensions'));
});
