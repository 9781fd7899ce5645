/** Operations on the cluster's nodes from outside: kind's nodes are containers. */
import { setTimeout as after } from 'node:timers/promises';
import type { TestContext } from 'vitest';
import { finish, kubectl, release } from './cluster.ts';

/** Attempts to load an image: containerd may be busy with other images. */
const LOADS = 3;
const LOAD_AGAIN_MS = 5_000;
/** Exit codes of `docker exec` when the command did not start: the engine refused, or could not start a process. */
const NOT_BEGUN = new Set([125, 126]);
const EXECS = 5;
const EXEC_AGAIN_MS = 1_000;

/** Names of the cluster's nodes, which are those of their containers. */
export async function nodeNames(): Promise<string[]> {
  const names = await kubectl(['get', 'nodes', '-o', 'jsonpath={.items[*].metadata.name}']);
  return names.split(' ');
}

/** Cordons a node until the end of the test. */
export async function cordon(t: TestContext, node: string): Promise<void> {
  t.onTestFinished(async () => void (await kubectl(['uncordon', node])));
  await kubectl(['cordon', node]);
}

/** Brings an image's archive onto all nodes of the cluster, or those that are named. */
export async function loadImage(image: { name: string; file: string }, ...nodes: string[]): Promise<void> {
  const where = ['--name', process.env.CLUSTER ?? release, ...(nodes.length > 0 ? ['--nodes', nodes.join(',')] : [])];
  for (let loads = 1; ; loads++) {
    const { code, stderr } = await finish('kind', ['load', 'image-archive', image.file, ...where]);
    if (code === 0) return;
    if (loads === LOADS) throw new Error(`kind cannot load ${image.name} from ${image.file}: ${stderr}`);
    await after(LOAD_AGAIN_MS);
  }
}

/**
 * Tells which images a node has, by name and id. containerd lists an image once by its name and once by its id, with the same
 * manifest. A name that was given to another image has the manifest of that.
 */
export async function imagesOn(node: string): Promise<(image: { name: string; id: string }) => boolean> {
  const lines = (await onNode(node, ['ctr', '--namespace', 'k8s.io', 'images', 'ls'])).split('\n');
  const manifests = new Map(lines.map((line) => line.split(/ +/)).map(([reference, , digest]) => [reference, digest]));
  return ({ name, id }) => {
    const manifest = manifests.get(id);
    return (
      manifest !== undefined && manifests.get(name.startsWith('localhost/') ? name : `docker.io/${name}`) === manifest
    );
  };
}

/** stdout of a command on a node; rejects when it ends with more than 1. */
export async function onNode(node: string, command: readonly string[]): Promise<string> {
  for (let execs = 1; ; execs++) {
    const { code, stdout, stderr } = await finish('docker', ['exec', node, ...command]);
    if (code <= 1) return stdout;
    if (!NOT_BEGUN.has(code) || execs === EXECS) {
      throw new Error(`${command.join(' ')} on ${node} ended with ${code}: ${stderr}`);
    }
    await after(EXEC_AGAIN_MS);
  }
}

/** A process on a node, by the id that it has there. */
export interface NodeProcess {
  node: string;
  pid: string;
}

/** Processes whose command line holds `text`, in containers only of the pod named `pod` where one is given. */
export async function processes(text: string, pod?: string): Promise<NodeProcess[]> {
  const found: NodeProcess[] = [];
  for (const node of await nodeNames()) {
    const pids = (await onNode(node, ['pgrep', '--full', '--', text])).split('\n').filter(Boolean);
    for (const pid of pids) {
      // The kubelet gives every container its pod's name. A process of another pod may have ended meanwhile.
      const read = `tr '\\0' '\\n' </proc/${pid}/environ || true`;
      const environment = pod ? await onNode(node, ['sh', '-c', read]) : '';
      if (!pod || environment.split('\n').includes(`HOSTNAME=${pod}`)) found.push({ node, pid });
    }
  }
  return found;
}

/** Sends a signal to processes; one that has ended meanwhile is not missed. */
export async function signal(name: 'KILL' | 'STOP' | 'CONT', targets: readonly NodeProcess[]): Promise<void> {
  if (targets.length === 0) throw new Error(`there is no process to send SIG${name} to`);
  for (const { node, pid } of targets) await onNode(node, ['kill', `-${name}`, pid]);
}

/** Ends every process of the nodes whose command line holds `text`, with SIGKILL. Rejects when there is none. */
export async function killOnNode(text: string): Promise<void> {
  await signal('KILL', await processes(text));
}
