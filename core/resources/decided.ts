import { canonicalJson } from '../json.ts';
import type { ApprovalSpec } from './approval.ts';

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
