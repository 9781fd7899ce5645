/** What is done to the cluster's only node from outside: kind's node is a container. */
import { finish } from './cluster.ts';

const node = `${process.env.CLUSTER ?? 'berth'}-control-plane`;

/** Ends every process of the node whose command line holds `text`, with SIGKILL. Rejects when there is none. */
export async function killOnNode(text: string): Promise<void> {
  const { code, stderr } = await finish('docker', ['exec', node, 'pkill', '--signal', 'KILL', '--full', '--', text]);
  if (code !== 0) throw new Error(`no process on ${node} was killed for ${text}: ${stderr}`);
}
