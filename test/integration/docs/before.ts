const NOTES = 'berth create notes -- python3 examples/notes.py';
const session = (name: string, spec: object) => object('Session', name, spec);
const turn = (name: string, spec: object) => object('Turn', name, { session: 'notes', ...spec });

function object(kind: string, name: string, spec: object): string {
  const manifest = JSON.stringify({ apiVersion: 'berth.dev/v1alpha1', kind, metadata: { name }, spec });
  return `kubectl apply -f - <<'END'\n${manifest}\nEND`;
}

/** Asks whether to delete a branch, whatever its input is, and ends once that is decided. */
const ASKS = `read request
case "$request" in
  *'"approval"'*) answer='{"status": "success", "output": "done"}' ;;
  *) answer='{"status": "approval", "prompt": "Delete branch \\"old\\"?"}' ;;
esac
echo "$BERTH_RESULT_START_MARKER $answer $BERTH_RESULT_END_MARKER"`;

/** Sets the address of the HTTP API of an embedded cluster begun anew, and the token of somebody who may read turns. */
const API = `berth local down
berth local up --detach --api-port 8080
export API=http://127.0.0.1:8080
kubectl create serviceaccount reader
kubectl create role reader --verb=get,list --resource=turns.berth.dev
kubectl create rolebinding reader --role=reader --serviceaccount=default:reader
export TOKEN="$(kubectl create token reader --audience berth)"`;

/** A class whose agents reach the network, and may have the Secret model. */
const CODING = `kubectl apply -f - <<'END'
${JSON.stringify({
  apiVersion: 'berth.dev/v1alpha1',
  kind: 'SessionClass',
  metadata: { name: 'coding' },
  spec: {
    overrides: ['agent.command', 'agent.args', 'agent.env', 'agent.workingDir'],
    secrets: ['model'],
    sandbox: { network: { mode: 'Open' } },
  },
})}
END`;

/** Shell commands by page that are run before those of the page, for what its reader has already. */
export const BEFORE: Readonly<Record<string, string>> = {
  'README.md': 'berth local down; rm -f "$BERTH_HOME/told-of-real-clusters"',
  'docs/agents/files.md': 'echo hello >words.txt',
  'docs/approvals.md': `${session('notes', { agent: { command: ['sh', '-c', ASKS] } })}
${turn('notes-1', { input: null })}
until kubectl get turn notes-1 -o jsonpath='{.status.phase}' | grep AwaitingApproval; do :; done`,
  'docs/artifacts.md': API,
  'docs/cli.md': `${NOTES}\n${turn('notes-9dnwgnrqgfxtt', { input: 'hello' })}`,
  // The class of a release before: index 8 of its overrides is the field that the page adds.
  'docs/install.md': `kubectl create namespace team
kubectl patch sessionclass default --type=json -p '[{"op": "test", "path": "/spec/overrides/8", "value": "agent.files"},
  {"op": "remove", "path": "/spec/overrides/8"}]'`,
  'docs/network.md': 'kubectl create namespace agents',
  // Events of one second have no order: the suspension comes in a later one than the pod. An event is written after what it tells of.
  'docs/operations.md': `${NOTES} && berth turn notes --text hello && began=$(date +%s)
until [ "$(date +%s)" -gt "$began" ]; do :; done
berth suspend notes
until kubectl events --for session/notes | grep Suspended; do :; done`,
  'docs/pools.md': 'kubectl create namespace team-a',
  // What is there when the Secret is changed: a session with a pod that has its old value.
  'docs/runbooks.md': `kubectl create secret generic model --from-literal=key=the-old-key --dry-run=client -o yaml | kubectl apply -f -
${CODING}
berth create coder --class coding --env-from-secret API_KEY=model/key -- python3 examples/notes.py && berth turn coder --text hello`,
  'docs/sandbox.md': `${NOTES} && berth turn notes --text hello`,
  'docs/sessions.md': `${NOTES}\n${turn('notes-1', { input: 'hello' })}\ncp agent.py index.py`,
  'docs/suspension.md': NOTES,
  'docs/troubleshooting.md': `${NOTES}\n${turn('notes-3', { input: 'hello' })}`,
};
