/** Looks at objects by requests of this process: a kubectl for each look of a wait would take half a core from the cluster. */
import { setTimeout as after } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { loadConnection } from '../../../core/kube/config.ts';

const BERTH = 'apis/berth.dev/v1alpha1';
/** API groups of the kinds that tests wait for, by their plural. */
const GROUPS: Readonly<Record<string, string>> = {
  configmaps: 'api/v1',
  environments: BERTH,
  events: 'api/v1',
  leases: 'apis/coordination.k8s.io/v1',
  networkpolicies: 'apis/networking.k8s.io/v1',
  pods: 'api/v1',
  resourcequotas: 'api/v1',
  serviceaccounts: 'api/v1',
  sessionpools: BERTH,
  sessions: BERTH,
  turns: BERTH,
};
const PARAMETERS: Readonly<Record<string, string>> = { '-l': 'labelSelector', '--field-selector': 'fieldSelector' };

const AGAIN_MS = 500;
const PATIENCE_MS = 60_000;
let connected: ReturnType<typeof connect> | undefined;

/** Path of what `kubectl get` is asked for by these arguments; undefined for kinds and options that are not known here. */
export function pathOf([kind = '', ...rest]: readonly string[]): string | undefined {
  const plural = [kind, `${kind}s`, kind.replace(/y$/, 'ies')].find((name) => name in GROUPS);
  if (plural === undefined) return undefined;
  let [namespace, name]: (string | undefined)[] = [];
  const query = new URLSearchParams();
  for (let at = 0; at < rest.length; at += 1) {
    const word = rest[at]!;
    const parameter = PARAMETERS[word];
    if (word === '-n') namespace = rest[++at];
    else if (parameter) query.set(parameter, rest[++at] ?? '');
    else if (word.startsWith('-') || name !== undefined) return undefined;
    else name = word;
  }
  // Each of these kinds is namespaced, and a selector does not go with a name.
  if (!namespace || (name !== undefined && query.size > 0)) return undefined;
  const collection = `/${GROUPS[plural]}/namespaces/${namespace}/${plural}`;
  return name === undefined ? `${collection}?${query}` : `${collection}/${name}`;
}

/**
 * Resolves with the answer to a GET as the user of KUBECONFIG. Asks again, for a minute at most, where the server cannot be reached
 * or cannot answer; rejects with the server's words where it refuses.
 */
export async function look(path: string): Promise<unknown> {
  for (const deadline = performance.now() + PATIENCE_MS; ; await after(AGAIN_MS)) {
    const answer = await ask(path).catch((error: Error) => error);
    if (!(answer instanceof Error)) {
      if (answer.status === 200) return JSON.parse(answer.text);
      const refused = new Error(`GET ${path} is answered with ${answer.status}: ${answer.text}`);
      if ((answer.status < 500 && answer.status !== 429) || performance.now() > deadline) throw refused;
    } else if (performance.now() > deadline) throw answer;
  }
}

async function ask(path: string): Promise<{ status: number; text: string }> {
  connected ??= connect();
  const { server, headers, dispatcher } = await connected;
  const { statusCode, body } = await request(`${server}${path}`, { dispatcher, headers: await headers() });
  return { status: statusCode, text: await body.text() };
}

async function connect() {
  const { server, tls, headers } = await loadConnection();
  // An idle connection closes soon: what is open at the end of a test file is taken for a leak.
  const limits = { keepAliveTimeout: 1_000, headersTimeout: 30_000, bodyTimeout: 30_000 };
  return { server, headers, dispatcher: new Agent({ ...limits, connect: tls }) };
}
