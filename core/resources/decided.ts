import { canonicalJson } from '../json.ts';
import type { ApprovalSpec } from './approval.ts';
import type { TurnStatus } from './turn.ts';

/** Reports whether a decision of this user counts for the turn; undefined: nobody knows whose it is. */
export function decisionCounts(user: string | undefined, { granted }: Pick<TurnStatus, 'granted'>): boolean {
  const notBy = granted?.notBy;
  return notBy === undefined || (user !== undefined && !notBy.includes(user));
}

/** Says why a decision of this user does not count. */
export function selfApprovalText(user: string | undefined, turn: string): string {
  return user === undefined
    ? `the class of turn "${turn}" has selfApproval: Refused, so spec.requester has to say who decides`
    : `${user} has asked for turn "${turn}" or made its session, and its class has selfApproval: Refused, so somebody else has to decide`;
}

type Given = Pick<ApprovalSpec, 'decision' | 'response' | 'note' | 'requester'>;

/** Reports whether the same user has made the same decision, so that it is no second one. */
export function isSameDecision(first: Given, second: Given): boolean {
  const facts = ({ decision, response, note }: Given) => canonicalJson([decision, response ?? null, note ?? null]);
  return first.requester !== undefined && first.requester === second.requester && facts(first) === facts(second);
}

/** Says who has decided what, and when; `at` is RFC 3339. */
export function decidedText(
  { turn, requestId, decision, requester, note }: Given & Pick<ApprovalSpec, 'turn' | 'requestId'>,
  at: string,
): string {
  const verb = decision === 'Approve' ? 'approved' : 'denied';
  const why = note ? `, with the note ${JSON.stringify(note)}` : '';
  return `${requester ?? 'Somebody'} has ${verb} request "${requestId}" of turn "${turn}" already, at ${at}${why}. The first decision counts`;
}
