import type { StoredSession } from '../../core/resources/kinds.ts';

/** Time after which a turn that does not run yet gets an explanation, milliseconds. */
export const EXPLAIN_AFTER_MS = 3_000;

/** Returns the first condition that explains why the session does not take a turn. */
export function whyWaiting(session: Pick<StoredSession, 'metadata' | 'spec' | 'status'>, cliName: string): string {
  const { conditions, currentTurn } = session.status ?? {};
  if (!conditions) {
    return `no controller has seen session ${session.metadata.name} yet; is Berth's controller running in this cluster?`;
  }
  const asks = conditions.find(({ type, status }) => type === 'ApprovalPending' && status === 'True');
  if (asks) return `${asks.message}; to decide: ${cliName} approve ${session.metadata.name} [--deny]`;
  if (currentTurn) return `turn ${currentTurn} of the session is running`;
  if (session.spec.suspend) return `the session is held; to let it go on: ${cliName} resume ${session.metadata.name}`;
  for (const type of ['Admitted', 'Ready']) {
    const condition = conditions.find((one) => one.type === type);
    if (condition && condition.status !== 'True') return `${condition.reason}: ${condition.message}`;
  }
  return 'the session is ready and takes the turn next';
}
