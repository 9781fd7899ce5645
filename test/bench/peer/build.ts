/** kubernetes-sigs/agent-sandbox from a checkout: its controller in an image, and its manifests as objects. */
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { type ArchiveResult, writeArchive } from '../../../images/archive.ts';
import { type Any, checkout, finish } from '../../e2e/support/cluster.ts';

const OUT = join(checkout, 'build', 'peer');
const PROGRAM = 'agent-sandbox-controller';
const IMAGE = 'example/agent-sandbox:bench';
const BUILD_LIMIT_MS = 1_200_000;
/** Manifests of the controller and its rights, and those of its kinds, in the checkout's folder k8s. */
export const MANIFESTS = [
  'controller.yaml',
  'extensions.yaml',
  'rbac.generated.yaml',
  'extensions-rbac.generated.yaml',
];
export const KINDS = [
  'agents.x-k8s.io_sandboxes.yaml',
  'extensions.agents.x-k8s.io_sandboxclaims.yaml',
  'extensions.agents.x-k8s.io_sandboxtemplates.yaml',
  'extensions.agents.x-k8s.io_sandboxwarmpools.yaml',
];

/** Compiles the controller with the machine's Go and its module proxy, and writes the image's archive. */
export async function buildPeer(source: string): Promise<ArchiveResult> {
  const root = join(OUT, 'root');
  await mkdir(root, { recursive: true });
  const args = ['build', '-trimpath', '-ldflags', '-s -w', '-o', join(root, PROGRAM), `./cmd/${PROGRAM}`];
  const env = { CGO_ENABLED: '0', GOFLAGS: '-buildvcs=false' };
  const { code, stderr } = await finish('go', args, { cwd: source, env, timeoutMs: BUILD_LIMIT_MS });
  if (code !== 0) throw new Error(`${source} does not build: ${stderr.slice(-2000)}`);
  const image = {
    name: IMAGE,
    layers: [{ folder: root }],
    config: { Entrypoint: [`/${PROGRAM}`], User: '65532:65532' },
  };
  return writeArchive(image, join(OUT, 'image.tar'));
}

async function documents(file: string): Promise<Any[]> {
  const found = parseAllDocuments(await readFile(file, 'utf8')).map((document) => document.toJS());
  return found.filter(Boolean);
}

/** Kind of one version: without its webhook no other can be converted. */
function oneVersion(definition: Any): Any {
  const { conversion: _, versions, ...spec } = definition.spec;
  return { ...definition, spec: { ...spec, versions: versions.filter(({ storage }: Any) => storage) } };
}

/** Deployment that runs the built image with the extensions and without the webhook. */
function withImage(object: Any): Any {
  if (object.kind !== 'Deployment') return object;
  const deployment = structuredClone(object);
  const [container] = deployment.spec.template.spec.containers;
  container.image = IMAGE;
  container.imagePullPolicy = 'Never';
  container.args = ['--leader-elect=true', '--extensions', '--enable-webhook=false'];
  return deployment;
}

/** The objects to apply: kinds first, then the namespace, the rights and the controller. */
export async function peerObjects(source: string): Promise<{ kinds: Any[]; rest: Any[] }> {
  const kinds: Any[] = [];
  for (const name of KINDS) kinds.push(...(await documents(join(source, 'k8s/crds', name))).map(oneVersion));
  const rest: Any[] = [];
  for (const name of MANIFESTS) rest.push(...(await documents(join(source, 'k8s', name))).map(withImage));
  return { kinds, rest };
}
