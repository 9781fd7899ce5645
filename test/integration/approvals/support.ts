import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { type Approval, approvals, type StoredSession, type StoredTurn, turns } from '../../../core/resources/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { type Installation, pythonAgent } from '../../support/installation.ts';

/** Folder into which agents write for the tests. */
export const SCRATCH = mkdtempSync(join(tmpdir(), 'berth-approvals-'));
afterAll(() => rmSync(SCRATCH, { recursive: true, maxRetries: 10 }));
const CLIENT = join(import.meta.dirname, '..', '..', '..', 'clients', 'python');

/**
 * Asks each of the input's questions by an envelope, one process after the other, and tells what it was told. The state
 * carries it from one to the next.
 */
export const ASKS = pythonAgent(`
path = state + '/told'
told = json.load(open(path)) if os.path.exists(path) and request.get('approval') else []
print('leg', len(told) + (1 if request.get('approval') else 0))
if request.get('approval'):
    told.append({k: v for k, v in request['approval'].items() if k != 'requestId'})
    open('${SCRATCH}/' + request['turn']['name'] + '-told', 'a').write(request['approval']['requestId'] + chr(10))
    assert json.loads(os.environ['BERTH_APPROVAL']) == request['approval']
json.dump(told, open(path, 'w'))
questions = request['input']['questions']
if len(told) < len(questions):
    print(os.environ['BERTH_RESULT_START_MARKER'])
    print(json.dumps({'status': 'approval', 'prompt': questions[len(told)], 'payload': {'number': len(told) + 1}}))
    print(os.environ['BERTH_RESULT_END_MARKER'])
else:
    time.sleep(request['input'].get('linger', 0))
    answer({'told': told, 'restored': 'restored' in request['session'], 'incarnation': request['session']['incarnation']})
`);

/** Asks by the socket and waits. Goes on from its state where it is told by a request. */
export const ASKS_ALIVE = pythonAgent(`
import threading
sys.path.insert(0, '${CLIENT}')
import berth_agent
path = state + '/told'
def take(approval):
    told.append(approval.get('response'))
    with open('${SCRATCH}/' + request['turn']['name'] + '-alive', 'a') as f:
        f.write(str(os.getpid()) + ' ' + approval['requestId'] + chr(10))
    json.dump(told, open(path, 'w'))
told = json.load(open(path)) if os.path.exists(path) and request.get('approval') else []
if request.get('approval'):
    take(request['approval'])
json.dump(told, open(path, 'w'))
for question in request['input']['questions'][len(told):]:
    take(berth_agent.approve(question))
if request['input'].get('background'):
    threading.Thread(target=berth_agent.approve, args=(request['input']['background'],), daemon=True).start()
    time.sleep(1)
time.sleep(request['input'].get('linger', 0))
answer({'told': told, 'incarnation': request['session']['incarnation']})
`);

/** The turn once it asks (this). */
export function asked(cluster: Installation, name: string, prompt?: string): Promise<StoredTurn> {
  return eventually(
    async () => {
      const turn = await cluster.client.get(turns, { namespace: 'default', name });
      const { phase, approval } = turn.status ?? {};
      return phase === 'AwaitingApproval' && (prompt === undefined || approval?.prompt === prompt) ? turn : undefined;
    },
    { what: `turn ${name} asks` },
  );
}

/** The session's turn asks in the pod of the incarnation, and a pass that knows all of it gives up no pod. */
export async function asksAndKeepsPod(cluster: Installation, name: string, incarnation: number): Promise<void> {
  const asks = ({ status }: StoredSession) =>
    status?.phase === 'AwaitingApproval' && status.podName !== undefined && status.incarnation === incarnation;
  await cluster.until(name, `asking in pod ${incarnation}`, asks);
  await cluster.patch(name, { priority: 1 });
  const looked = await cluster.until(
    name,
    'looked at again',
    ({ metadata, status }) => status?.observedGeneration === metadata.generation,
  );
  assert.ok(asks(looked), JSON.stringify(looked.status));
}

let made = 0;

/** Creates an Approval as kubectl create does: without an owner. */
export function decide(cluster: Installation, turn: StoredTurn, spec: Partial<Approval['spec']>): Promise<unknown> {
  const name = `by-hand-${++made}`;
  const object = {
    apiVersion: 'berth.dev/v1alpha1',
    kind: 'Approval',
    metadata: { name, namespace: 'default' },
    spec: { turn: turn.metadata.name, requestId: turn.status?.approval?.id, ...spec },
  };
  return cluster.client.create(approvals, object as Approval);
}

export function outputOf<T>(turn: StoredTurn): T {
  return turn.status?.output as T;
}
