/**
 * `make chart-lint`: kubeconform and kube-score on what the chart renders. Kubeconform's schemas are made from Kubernetes' own
 * OpenAPI document and from the CRDs, without unknown fields. A finding of kube-score has to be explained below. Both programs and the document are
 * Go modules.
 */
import { execFile } from 'node:child_process';
import { access, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CHARTS, REQUIRED } from '../support/chart.ts';
import { tools } from '../support/tools.ts';
import { LOCATION, writeBuiltin, writeCustom } from './schemas.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '..', '..');
const MOST_OUTPUT = 64 * 1024 * 1024;

const KUBECONFORM = { name: 'kubeconform', module: 'github.com/yannh/kubeconform/cmd/kubeconform', version: 'v0.7.0' };
const KUBE_SCORE = { name: 'kube-score', module: 'github.com/zegl/kube-score/cmd/kube-score', version: 'v1.20.0' };
type Tool = typeof KUBECONFORM;

/** Values of each render, as for `--set`. */
const RENDERS: Record<string, string[]> = {
  'the defaults': [],
  'every feature': [
    ...['namespaces={team-a,team-b}', 'api.enter.enabled=true', 'api.tls.secretName=cert', 'api.replicas=2'],
    ...['api.ingress.enabled=true', 'api.ingress.host=berth.example.com', 'api.ingress.className=nginx'],
    ...['api.httpRoute.enabled=true', 'api.httpRoute.parentRefs[0].name=public'],
    ...['metrics.annotations=true', 'metrics.readers[0].namespace=monitoring', 'metrics.readers[0].name=prometheus'],
    ...['metrics.podMonitor.enabled=true', 'metrics.podMonitor.apiToken.secret=scraper'],
    ...['pools[0].namespace=team-a', 'pools[1].namespace=team-b', 'pools[1].class=python'],
    ...['quotas[0].namespace=team-a', 'quotas[0].sessions=5', 'quotas[0].storeBytes=5000000'],
    ...['image.pullSecrets={registry}', 'controller.nodeSelector.disk=ssd', 'controller.priorityClassName=high'],
    ...['controller.tolerations[0].key=a', 'controller.tolerations[0].operator=Exists'],
    ...['networkPolicies.enabled=true', 'networkPolicies.apiServer[0].cidr=10.0.0.1/32', 'commonLabels.team=agents'],
    ...[
      'networkPolicies.apiServer[0].port=6443',
      'defaultClass.manage=true',
      'controller.extraEnv[0].name=HTTPS_PROXY',
    ],
    ...['controller.extraEnv[0].value=http://proxy:3128', 'admissionPolicies.meshContainers={istio-proxy}'],
  ],
};

/** Kinds without a schema: those of the Prometheus Operator and of the Gateway API, which Kubernetes does not describe. */
const WITHOUT_SCHEMA = ['PodMonitor', 'HTTPRoute'];

interface Explained {
  /** Id of kube-score's check. */
  check: string;
  /** Matches the objects, as `Kind/group/version/namespace/name`. */
  object: RegExp;
  why: string;
}

const EXPLAINED: Explained[] = [
  {
    check: 'container-resources',
    object: /berth-(controller|api)$/,
    why: 'A limit of CPU throttles the lease and every session behind it, also on a node with CPU to spare. The request is the share that is sure.',
  },
  {
    check: 'container-image-pull-policy',
    object: /./,
    why: 'A release has a tag of its own or a digest, so the image of a tag does not change, and a node starts it while the registry is away.',
  },
  {
    check: 'deployment-replicas',
    object: /berth-api$/,
    why: 'The API holds no state and is one replica by default; api.replicas: 2 is for those who cannot wait for a restart.',
  },
  {
    check: 'deployment-has-host-podantiaffinity',
    object: /./,
    why: 'topologySpreadConstraints keep the replicas apart, also on a cluster of one node.',
  },
  {
    check: 'deployment-has-poddisruptionbudget',
    object: /./,
    why: 'The other replica takes over within seconds of an eviction, and pods of sessions do not notice.',
  },
  {
    check: 'pod-networkpolicy',
    object: /./,
    why: 'What the programs need is the API server, whose addresses no chart knows; who may reach the API is up to the cluster.',
  },
];

/** Returns the path of a program, which is compiled at its first use. Rejects without Go. */
async function program({ name, module, version }: Tool): Promise<string> {
  const cache = process.env.BERTH_CACHE ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'berth');
  const folder = join(cache, 'chart-lint', `${name}-${version}`);
  const path = join(folder, name);
  if (
    await access(path).then(
      () => true,
      () => false,
    )
  )
    return path;
  console.log(`compiling ${name} ${version}`);
  await run('go', ['install', '-trimpath', `${module}@${version}`], {
    env: { ...process.env, GOBIN: folder, CGO_ENABLED: '0' },
    timeout: 600_000,
  });
  return path;
}

/** Returns the path of Kubernetes' OpenAPI document, which its Go module has. The version is that of the cluster of the e2e tests. */
async function swagger(): Promise<string> {
  const cwd = join(ROOT, 'test/cluster/kubernetes');
  const { stdout } = await run('go', ['mod', 'download', '-json', 'k8s.io/kubernetes'], { cwd, timeout: 600_000 });
  return join(JSON.parse(stdout).Dir, 'api/openapi-spec/swagger.json');
}

/** stdout of a linter, whose exit code says that it has found something. */
async function found(file: string, args: string[]): Promise<string> {
  const { stdout } = await run(file, args, { maxBuffer: MOST_OUTPUT, timeout: 120_000 }).catch(
    (error: Error & { stdout?: string }) => {
      if (!error.stdout) throw error;
      return { stdout: error.stdout };
    },
  );
  return stdout;
}

/** Errors of kubeconform, one a line, and the number of objects. */
async function conform(
  kubeconform: string,
  schemas: string,
  rendered: string,
): Promise<{ errors: string[]; objects: number }> {
  const args = ['-strict', '-summary', '-output', 'json', '-skip', WITHOUT_SCHEMA.join()];
  const { resources, summary } = JSON.parse(
    await found(kubeconform, [...args, '-schema-location', join(schemas, LOCATION), rendered]),
  );
  const errors = (resources ?? []).map(({ kind, name, msg }: Record<string, string>) => `${kind} ${name}: ${msg}`);
  return { errors, objects: summary.valid + summary.invalid + summary.errors + summary.skipped };
}

interface Scored {
  object_name: string;
  checks: { check: { id: string }; grade: number; skipped: boolean; comments: { summary: string }[] | null }[];
}

/** kube-score's grade of a check that has found nothing. */
const GOOD = 10;

/** Findings of kube-score that are explained, and those that are not. */
async function score(kubeScore: string, rendered: string): Promise<{ explained: number; unexplained: string[] }> {
  const scored: Scored[] = JSON.parse(
    await found(kubeScore, ['score', '--kubernetes-version', 'v1.32', '--output-format', 'json', rendered]),
  );
  const findings = scored.flatMap(({ object_name: object, checks }) =>
    checks.filter(({ grade, skipped }) => !skipped && grade < GOOD).map((finding) => ({ object, ...finding })),
  );
  const isExplained = ({ object, check }: (typeof findings)[number]) =>
    EXPLAINED.some((one) => one.check === check.id && one.object.test(object));
  return {
    explained: findings.filter(isExplained).length,
    unexplained: findings
      .filter((finding) => !isExplained(finding))
      .map(
        ({ object, check, comments }) =>
          `${object}: ${check.id}: ${(comments ?? []).map(({ summary }) => summary).join('; ')}`,
      ),
  };
}

const [{ helm }, kubeconform, kubeScore, document] = await Promise.all([
  tools(),
  program(KUBECONFORM),
  program(KUBE_SCORE),
  swagger(),
]);
const work = await mkdtemp(join(tmpdir(), 'chart-lint-'));
try {
  await mkdir(join(work, 'schemas'));
  await writeBuiltin(document, join(work, 'schemas'));
  await writeCustom(join(ROOT, 'manifests'), join(work, 'schemas'));
  let problems = 0;
  for (const [name, values] of Object.entries(RENDERS)) {
    const rendered = join(work, `${name}.yaml`);
    const args = ['template', 'berth', join(CHARTS, 'berth'), '--namespace', 'berth-system'];
    const { stdout } = await run(helm, [...args, ...[...REQUIRED, ...values].flatMap((value) => ['--set', value])], {
      maxBuffer: MOST_OUTPUT,
    });
    await writeFile(rendered, stdout);
    const { errors, objects } = await conform(kubeconform, join(work, 'schemas'), rendered);
    const { explained, unexplained } = await score(kubeScore, rendered);
    console.log(
      `${name}: ${objects} objects; kubeconform: ${errors.length} errors; kube-score: ${explained} findings explained, ${unexplained.length} not`,
    );
    for (const problem of [...errors, ...unexplained]) console.error(`  ${problem}`);
    problems += errors.length + unexplained.length;
  }
  if (problems > 0) process.exitCode = 1;
} finally {
  await rm(work, { recursive: true, force: true });
}
