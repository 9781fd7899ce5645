/** What is done to the cluster's nodes from outside: kind's nodes are containers. */
import { finish, kubectl } from './cluster.ts';

/** Names of the cluster's nodes, which are those of their containers. */
export async function nodeNames(): Promise<string[]> {
  const names = await kubectl(['get', 'nodes', '-o', 'jsonpath={.items[*].metadata.name}']);
  return names.split(' ');
}

/** stdout of a command on a node; rejects when it ends with more than 1. */
export async function onNode(node: string, command: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await finish('docker', ['exec', node, ...command]);
  if (code > 1) throw new Error(`${command.join(' ')} on ${node} ended with ${code}: ${stderr}`);
  return stdout;
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
