import { type StoredTurn, sessions, turns } from '../../core/resources/kinds.ts';
import { jsonBytes, MAX_PAYLOAD_BYTES } from '../../core/resources/limits.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { sendDecision } from '../cluster/decision.ts';
import { getTurn } from '../cluster/stored.ts';
import { withCluster } from '../connect/connect.ts';
import { failed, refused } from '../errors.ts';
import { withoutKind } from '../input/flags.ts';
import { parseFlag } from '../input/input.ts';
import { doneText } from '../print/print.ts';
import { hanging, printable } from '../print/printable.ts';

export interface ApproveFlags extends ClusterFlags {
  deny?: boolean;
  response?: string;
  note?: string;
  request?: string;
  yes?: boolean;
  output?: 'name';
}

/**
 * Decides on the approval request of a session's waiting turn, or of the named turn. Shows the request on stderr, and asks
 * whether it is meant where a person can answer.
 */
export async function approve(name: string, flags: ApproveFlags, cli: Cli): Promise<number> {
  const response = flags.response === undefined ? undefined : parseFlag('--response', flags.response);
  if (jsonBytes(response) > MAX_PAYLOAD_BYTES) {
    throw refused(`--response has ${jsonBytes(response)} bytes as JSON; at most ${MAX_PAYLOAD_BYTES} are allowed`);
  }
  return withCluster(flags, cli, async (cluster) => {
    const turn = await turnThatAsks(name, cluster, cli);
    const asked = turn.status?.approval;
    if (turn.status?.phase !== 'AwaitingApproval' || !asked) {
      throw refused(`turn ${turn.metadata.name} does not ask anything: it is ${turn.status?.phase ?? 'not seen yet'}`);
    }
    if (flags.request !== undefined && flags.request !== asked.id) {
      throw refused(`turn ${turn.metadata.name} asks ${asked.id}, not ${flags.request}`);
    }
    cli.say(`turn ${turn.metadata.name} asks: ${printable(hanging(asked.prompt))}`);
    const decision = flags.deny ? 'Deny' : 'Approve';
    if (cli.ask && !flags.yes && !(await cli.ask(`${decision} it?`))) throw failed('nothing is decided');
    await sendDecision(turn, asked.id, { decision, response, note: flags.note }, cluster, cli.interrupted);
    await cli.out(doneText(`turn.berth.dev/${turn.metadata.name}`, flags.deny ? 'denied' : 'approved', flags.output));
    return 0;
  });
}

/** Returns the turn of this name, or the waiting turn of the session of this name; the kind may be before it. */
async function turnThatAsks(named: string, cluster: Cluster, cli: Cli): Promise<StoredTurn> {
  const { api, namespace } = cluster;
  const signal = cli.interrupted;
  const { kind, name } = withoutKind(named);
  if (kind === 'turn') return getTurn(cluster, name, signal);
  const fieldSelector = `spec.session=${name}`;
  const { items } = await api.list(turns, { namespace, fieldSelector, signal });
  const waiting = items.find(({ status }) => status?.phase === 'AwaitingApproval');
  if (waiting) return waiting;
  const byName = { namespace, fieldSelector: `metadata.name=${name}`, signal };
  const [turn] = kind === 'session' ? [] : (await api.list(turns, byName)).items;
  if (turn) return turn;
  const session = await api.list(sessions, byName);
  if (session.items.length > 0) throw refused(`no turn of session ${name} asks anything`);
  throw refused(
    `there is no session or turn "${name}" in namespace "${namespace}"; berth list -A shows those there are`,
  );
}
