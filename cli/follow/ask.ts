import { turns } from '../../core/resources/kinds.ts';
import { clip } from '../../core/resources/limits.ts';
import type { Cli } from '../cli.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { sendDecision } from '../cluster/decision.ts';
import { hanging, printable } from '../print/printable.ts';

/** Length of the shown data of a question, bytes. */
const PAYLOAD_BYTES = 2_000;

/**
 * Shows the question of a turn and, where the caller is at a terminal and may decide, asks for the decision. Ends when
 * the signal aborts, because somebody else has decided or the turn has ended. Never rejects.
 */
export async function askInPlace(
  { turn: name, requestId, prompt }: { turn: string; requestId: string; prompt: string },
  cluster: Cluster,
  cli: Cli,
  signal: AbortSignal,
): Promise<void> {
  cli.say(`turn ${name} asks: ${printable(hanging(prompt))}`);
  const command = `to decide: ${cli.name} approve ${name} [--deny]`;
  try {
    const turn = await cluster.api.get(turns, { namespace: cluster.namespace, name }, { signal });
    const { approval } = turn.status ?? {};
    if (approval?.id !== requestId || approval.decided) return;
    if (approval.payload !== undefined) cli.say(clip(printable(JSON.stringify(approval.payload)), PAYLOAD_BYTES));
    if (!cli.ask || !(await cluster.mayDecide(signal))) return cli.say(command);
    const decision = (await cli.ask('Approve it?', signal)) ? 'Approve' : 'Deny';
    await sendDecision(turn, requestId, { decision }, cluster, signal);
  } catch (error) {
    if (!signal.aborted) cli.say(`${(error as Error).message}\n${command}`);
  }
}
