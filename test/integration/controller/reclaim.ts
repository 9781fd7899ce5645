import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import type { RequestFacts } from '../../../local/apiserver/types.ts';
import { eventually } from '../../support/eventually.ts';
import { type Installation, pythonAgent } from '../../support/installation.ts';

/** A request of the controller that is part of giving up an idle session's pod. */
export interface Step {
  name: string;
  is(request: RequestFacts, session: { name: string; uid: string }): boolean;
  /** False: the request does not tell whose step it is. Only one session of the cluster may be suspended meanwhile. */
  isOwn: boolean;
}

export const STEPS: Step[] = [
  { name: 'the status says Suspending', isOwn: true, is: (r, s) => r.subresource === 'status' && r.name === s.name },
  { name: 'the state is stored', isOwn: false, is: (r) => r.resource === 'blobs' && r.verb === 'create' },
  {
    name: 'the stored state is read',
    isOwn: true,
    is: (r, s) => r.resource === 'blobs' && r.verb === 'get' && r.name?.startsWith(`b-${s.uid}-`) === true,
  },
  {
    name: 'the session is read again',
    isOwn: true,
    is: (r, s) => r.verb === 'get' && r.resource === 'sessions' && r.name === s.name,
  },
  { name: 'the turns are listed again', isOwn: false, is: (r) => r.verb === 'list' && r.resource === 'turns' },
  { name: 'the pod is deleted', isOwn: true, is: (r, s) => r.verb === 'delete' && r.name === `s-${s.uid}-1` },
  { name: 'the pod is known to be gone', isOwn: true, is: (r, s) => r.verb === 'get' && r.name === `s-${s.uid}-1` },
];

/** Garbage sweeps read turns and stored states too. None runs while the test waits for a step. */
export const NO_SWEEPS = { BERTH_GARBAGE_INTERVAL: '1h' };

/** Folder into which agents write for the tests. */
export const scratch = mkdtempSync(join(tmpdir(), 'berth-reclaim-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Shell that adds to the state once, when the test says that the session's first turn has ended with its own. */
export const lateWriter = (session: string) =>
  `[ -e ${scratch}/${session}-late ] && exit; until [ -e ${scratch}/${session}-ended ]; do sleep 0.1; done; head -c 20000 /dev/urandom > $BERTH_STATE_DIR/late; touch ${scratch}/${session}-late`;

/** Has the state changed, then the session idle: the next that is written of it is that it is being suspended. */
export async function becomesIdle(cluster: Installation, session: string): Promise<void> {
  writeFileSync(join(scratch, `${session}-ended`), '');
  await eventually(() => existsSync(join(scratch, `${session}-late`)), { what: 'the late part of the state' });
  const { status } = await cluster.session(session);
  await eventually(() => Date.now() > Date.parse(status?.lastActiveAt ?? '') + 1000);
  await cluster.patch(session, { timeouts: { idle: '1s' } });
}

/** Counts in its state, tells what it was told, and leaves a process behind that adds to the state. */
export const agent = (late = 'true') =>
  pythonAgent(`
import subprocess
with open('${scratch}/' + request['session']['name'], 'a') as f:
    f.write(request['turn']['name'] + chr(10))
path = state + '/count'
count = int(open(path).read()) + 1 if os.path.exists(path) else 1
open(path, 'w').write(str(count))
subprocess.Popen(['sh', '-c', '${late}'], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
late = os.path.getsize(state + '/late') if os.path.exists(state + '/late') else 0
answer({'count': count, 'incarnation': request['session']['incarnation'], 'restored': request['session'].get('restored'), 'late': late, 'pwd': os.getcwd(), 'uid': os.getuid()})
`);

export interface Answer {
  count: number;
  incarnation: number;
  late: number;
  restored?: { workspaceReset: boolean; note: string };
}
