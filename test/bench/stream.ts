import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pods } from '../../core/kube/resources.ts';
import { parseEventLine } from '../../core/pod-log/agent-events.ts';
import { followPodLog } from '../../core/pod-log/follow.ts';
import { readable } from '../../core/pod-log/session-text.ts';
import { systemClock } from '../../core/system.ts';
import type { RequestFacts } from '../../local/apiserver/types.ts';
import { Follower } from '../integration/api/follower.ts';
import { ApiCluster, type ApiProgram, BERTH_API, EVERYTHING } from '../integration/api/support.ts';
import { eventually } from '../support/eventually.ts';
import { pythonAgent } from '../support/installation.ts';
import { compared, type Figure } from './figures.ts';
import { count, TAIL_SAMPLES } from './settings.ts';

const BERTH = join(import.meta.dirname, '..', '..', 'bin', 'berth');
const CLIENTS = join(import.meta.dirname, '..', '..', 'clients', 'python');
const NAMESPACE = 'default';
const FOLLOWERS = 200;
const FOLLOWERS_OF_ONE = 100;
/** Events of the session that many follow. */
const EVENTS = count(300, 20);
const TURNS = count(40, 4);
/** Events of which the time is not counted: the first pass while connections open. */
const FIRST = 20;
/** Unit of the CPU time that /proc shows, milliseconds. */
const TICK_MS = 10;

const env = {
  BERTH_API_MAX_STREAMS: '1000',
  BERTH_API_CALLER_SHARE: '100',
  BERTH_API_CALLER_RATE: '1000000',
  BERTH_API_CALLER_BURST: '1000000',
};

/** Tells an event each 20 ms, as many as its input says. */
const teller = pythonAgent(`
sys.path.insert(0, '${CLIENTS}')
import berth_agent
for i in range(request['input'] or 0):
    berth_agent.event({'at': time.time() * 1000})
    time.sleep(0.02)
answer(None)
`);

/** Events of an agent as followers have them, each with the milliseconds since the agent told it. */
class Arrivals {
  readonly values: number[] = [];

  add(event: unknown): void {
    const { at } = event as { at?: number };
    if (at !== undefined) this.values.push(Date.now() - at);
  }

  get counted(): number[] {
    return this.values.slice(FIRST);
  }
}

/** Reads the pod's log as the API server streams it. */
async function readLog({ cluster }: ApiCluster, name: string, arrivals: Arrivals, signal: AbortSignal): Promise<void> {
  let rest = '';
  const { metadata } = await cluster.client.get(pods, { namespace: NAMESPACE, name }, { signal });
  const pod = { namespace: NAMESPACE, name, uid: metadata.uid, hasRunner: true };
  for await (const text of readable(followPodLog(cluster.client, systemClock, pod, { signal }), pod)) {
    const lines = (rest + text).split('\n');
    rest = lines.pop() as string;
    for (const line of lines) arrivals.add(parseEventLine(line)?.event ?? {});
  }
}

function watchByCli(kubeconfig: string, session: string, arrivals: Arrivals): ChildProcess {
  const child = spawn(BERTH, ['watch', session, '-o', 'json', '--kubeconfig', kubeconfig], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  createInterface({ input: child.stdout as NonNullable<ChildProcess['stdout']> }).on('line', (line) => {
    const { type, data } = JSON.parse(line) as { type: string; data: { event?: unknown } };
    if (type === 'agent') arrivals.add(data.event);
  });
  return child;
}

/** Time from an agent’s event to those who follow it, all at the same time. */
async function latency(api: ApiCluster, program: ApiProgram, token: string): Promise<Figure[]> {
  const { cluster } = api;
  await cluster.create('told', { agent: teller });
  await cluster.turn('told', 'told-0', 0);
  await cluster.ended('told-0');
  const { podName = '' } = (await cluster.session('told')).status ?? {};
  const stop = new AbortController();
  const [log, http, cli] = [new Arrivals(), new Arrivals(), new Arrivals()];
  const reading = readLog(api, podName, log, stop.signal).catch((error) => {
    if (!stop.signal.aborted) throw error;
  });
  const child = watchByCli(cluster.kubeconfig, 'told', cli);
  const url = `http://${program.host}/v1/namespaces/${NAMESPACE}/sessions/told/events`;
  const follower = await Follower.open(url, token);
  try {
    await cluster.turn('told', 'told-1', 100);
    await cluster.ended('told-1');
    await eventually(() => [log, cli].every(({ values }) => values.length > 0), { what: 'all follow' });
    for (const arrivals of [log, cli]) arrivals.values.length = 0;
    const seen = follower.of('agent').length;
    const all = FIRST + TAIL_SAMPLES;
    await cluster.turn('told', 'told-2', all);
    await cluster.ended('told-2');
    for (const { data, readAt } of await eventually(() => {
      const events = follower.of('agent').slice(seen);
      return events.length === all && [log, cli].every(({ values }) => values.length === all) ? events : undefined;
    })) {
      http.values.push(readAt - (data.event as { at: number }).at);
    }
  } finally {
    stop.abort(new Error('measured'));
    follower.close();
    child.kill();
    await reading;
  }
  const beside = { what: 'the log as the API server streams it', values: log.counted };
  return [
    compared('an agent’s event until a follower over HTTP has it', http.counted, beside),
    compared('an agent’s event until berth watch has printed it', cli.counted, beside),
  ];
}

/** CPU time of a process so far, milliseconds. */
function cpuOf({ child }: ApiProgram): number {
  const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

/** What turns of a namespace cost the API’s process while nobody, one and many follow the namespace. */
async function cost({ cluster }: ApiCluster, program: ApiProgram, token: string): Promise<Figure> {
  const url = `http://${program.host}/v1/namespaces/${NAMESPACE}/events`;
  const measured: { followers: number; cpuMs: number }[] = [];
  for (const followers of [0, 1, FOLLOWERS]) {
    const all = await Promise.all(Array.from({ length: followers }, () => Follower.open(url, token)));
    await eventually(() => all.every(({ events }) => events.length > 0), { what: 'all follow' });
    const before = cpuOf(program);
    const names = Array.from({ length: TURNS }, (_, i) => `cost-${followers}-${i}`);
    for (const name of names) {
      await cluster.turn('told', name, 0);
      await cluster.ended(name);
    }
    const last = names.at(-1) as string;
    const isTold = (follower: Follower) => follower.phases(last).includes('Succeeded');
    await eventually(() => all.every(isTold), { what: 'all followers have the end' });
    measured.push({ followers, cpuMs: cpuOf(program) - before });
    for (const follower of all) follower.close();
  }
  const [none, one, many] = measured;
  return {
    what: `CPU time of the API’s process for ${TURNS} turns of a namespace that ${FOLLOWERS} follow`,
    measured: `${many?.cpuMs} ms`,
    beside: `that one follows: ${one?.cpuMs} ms; that nobody follows: ${none?.cpuMs} ms`,
    values: measured,
  };
}

/** Cost of an agent's events while one and many follow its session: CPU of the API's process, and reads of the log. */
async function costOfOne({ cluster }: ApiCluster, program: ApiProgram, token: string): Promise<Figure> {
  const measured: { followers: number; cpuMs: number; reads: number }[] = [];
  let reads = 0;
  const isRead = ({ subresource, user }: RequestFacts) => {
    if (subresource === 'log' && user === BERTH_API) reads++;
    return false;
  };
  cluster.server.faults.delayNext(isRead, 0);
  for (const followers of [1, FOLLOWERS_OF_ONE]) {
    const name = `followed-${followers}`;
    await cluster.create(name, { agent: teller });
    await cluster.turn(name, `${name}-0`, 0);
    await cluster.ended(`${name}-0`);
    reads = 0;
    const url = `http://${program.host}/v1/namespaces/${NAMESPACE}/sessions/${name}/events`;
    const all = await Promise.all(Array.from({ length: followers }, () => Follower.open(url, token)));
    await eventually(() => all.every(({ events }) => events.length > 0), { what: 'all follow' });
    const before = cpuOf(program);
    await cluster.turn(name, `${name}-1`, EVENTS);
    await cluster.ended(`${name}-1`);
    await eventually(() => all.every((follower) => follower.of('agent').length === EVENTS), { what: 'all have all' });
    measured.push({ followers, cpuMs: cpuOf(program) - before, reads });
    for (const follower of all) follower.close();
  }
  const [one, many] = measured;
  return {
    what: `CPU time of the API’s process for ${EVENTS} events of a session that ${FOLLOWERS_OF_ONE} follow; reads of its log`,
    measured: `${many?.cpuMs} ms; ${many?.reads}`,
    beside: `that one follows: ${one?.cpuMs} ms; ${one?.reads}`,
    values: measured,
  };
}

/** Followers of what happens, as the HTTP API and the CLI serve them; the API is a program of its own beside an embedded cluster. */
export async function stream(): Promise<Figure[]> {
  const api = await ApiCluster.start();
  try {
    api.cluster.startController();
    const program = await api.startProgram(env);
    try {
      const { token } = await api.user(EVERYTHING);
      return [
        ...(await latency(api, program, token)),
        await cost(api, program, token),
        await costOfOne(api, program, token),
      ];
    } finally {
      program.child.kill();
      await program.closed;
    }
  } finally {
    await api.close();
  }
}
