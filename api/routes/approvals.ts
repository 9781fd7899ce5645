import { isAlreadyExists } from '../../core/kube/errors.ts';
import { decidedText, decisionCounts, isSameDecision, selfApprovalText } from '../../core/resources/decided.ts';
import { type Approval, approvals, ownedByTurn, type StoredTurn } from '../../core/resources/kinds.ts';
import { jsonBytes, MAX_PAYLOAD_BYTES } from '../../core/resources/limits.ts';
import { approvalName } from '../../core/resources/names.ts';
import { listPage, pageBody } from '../answers/list-page.ts';
import { showApproval } from '../answers/present.ts';
import { approval, approvalCreate, approvalList, listQuery, noQuery, turnParams } from '../openapi/schemas.ts';
import { Problem } from '../problems/problems.ts';
import { type Decided, decisionOn } from '../requests/decisions.ts';
import { createOnce } from '../requests/idempotency.ts';
import { checkDepth } from '../requests/json.ts';
import { type Route, route } from '../route.ts';
import { metaOf } from './sessions.ts';
import { turnOf } from './turns.ts';

const PATH = '/v1/namespaces/{namespace}/sessions/{session}/turns/{turn}/approvals';

export const approvalRoutes: Route[] = [
  route({
    method: 'POST',
    path: PATH,
    operationId: 'decide',
    summary: 'Decide on what a turn asks',
    description:
      'The first decision on a request counts, and there is one: another is answered AlreadyDecided, which says who has decided what, and when. It takes the right to create approvals, which is another than that to run turns.',
    rights: [{ verb: 'create', resource: 'approvals' }],
    params: turnParams,
    query: noQuery,
    body: approvalCreate,
    creates: true,
    codes: ['AlreadyDecided', 'InputTooDeep', 'ResponseTooLarge', 'RequestNotPending', 'SelfApproval'],
    responses: {
      201: { description: 'Created; the agent will be told.', schema: approval },
      200: { description: 'The caller has decided the same before.', schema: approval },
    },
    async handle({ params, body, caller, key, signal }, services) {
      const { requestId, response } = body.spec;
      checkDepth(response, 'spec.response');
      const bytes = jsonBytes(response ?? null);
      if (bytes > MAX_PAYLOAD_BYTES) {
        const message = `has ${bytes} bytes as JSON; at most ${MAX_PAYLOAD_BYTES} are allowed`;
        throw new Problem('ResponseTooLarge', `spec.response ${message}.`, {
          fields: [{ field: 'spec.response', message }],
        });
      }
      const turn = await turnOf(services, params, signal);
      const spec = { ...body.spec, turn: params.turn, requester: caller.username };
      const decided = () => decisionOn(services.api, turn, requestId, signal);
      const make = createOnce<Approval>({
        ...services,
        resource: approvals,
        namespace: params.namespace,
        scope: `${caller.username} ${turn.metadata.uid}`,
        key,
        body: { ...body, metadata: { ...body.metadata, name: approvalName(requestId) } },
        prefix: '',
        check: async () => {
          const first = await decided();
          if (first) throw new DecidedBefore(first);
          checkPending(turn, requestId);
          if (decisionCounts(caller.username, turn.status ?? {})) return;
          throw new Problem('SelfApproval', `${selfApprovalText(caller.username, params.turn)}.`);
        },
        build: (name) => ({
          metadata: {
            ...metaOf(body.metadata),
            name,
            namespace: params.namespace,
            ownerReferences: [ownedByTurn(turn)],
          },
          spec,
        }),
      });
      const { object, created } = await make.catch(async (error) => {
        const first = error instanceof DecidedBefore ? error.first : isAlreadyExists(error) && (await decided());
        if (!first) throw error;
        if (first.object && isSameDecision(first.spec, spec)) return { object: first.object, created: false };
        throw new Problem('AlreadyDecided', `${decidedText(first.spec, first.at)}.`);
      });
      return { status: created ? 201 : 200, body: showApproval(object) };
    },
  }),
  route({
    method: 'GET',
    path: PATH,
    operationId: 'listApprovals',
    summary: 'List the decisions on what a turn asked',
    rights: [{ verb: 'list', resource: 'approvals' }],
    params: turnParams,
    query: listQuery,
    responses: { 200: { description: 'A page of approvals.', schema: approvalList } },
    async handle({ params, query, memory, signal }, services) {
      const { namespace, turn: name } = params;
      const turn = await turnOf(services, params, signal);
      const options = { namespace, fields: [`spec.turn=${name}`], memory, signal };
      const { items, metadata } = await listPage(services.api, approvals, query, options);
      const own = items.filter(({ metadata: { ownerReferences } }) =>
        ownerReferences?.some(({ uid }) => uid === turn.metadata.uid),
      );
      return { status: 200, body: pageBody(own.map(showApproval), metadata) };
    },
  }),
];

/** Somebody has decided before. */
class DecidedBefore extends Error {
  readonly first: Decided;
  constructor(first: Decided) {
    super('the request is decided');
    this.first = first;
  }
}

/** Refuses a decision on what the turn does not ask. */
function checkPending({ metadata, status }: StoredTurn, requestId: string): void {
  const { phase, approval: asked } = status ?? {};
  if (asked?.id === requestId && phase === 'AwaitingApproval') return;
  const waits = phase === 'AwaitingApproval' ? `It waits for request "${asked?.id}".` : 'It waits for none.';
  throw new Problem('RequestNotPending', `Turn "${metadata.name}" does not ask "${requestId}". ${waits}`);
}
