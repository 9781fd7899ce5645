/** Answers log, attach and exec of pods, with the errors of the real API server and kubelet. */

import { existsSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ApiError } from '../../core/kube/errors.ts';
import type { PodHandlers, PodObject } from '../apiserver/types.ts';
import { internalError, isTrue, speaksProtocol, type Upgrade } from './channels.ts';
import type { ContainerLoop } from './container-loop.ts';
import { type LogOptions, readLog } from './log-read.ts';
import type { PipeFactory } from './pipes.ts';
import type { PodWorker } from './pod.ts';
import type { PodFolders } from './records.ts';
import { attach, exec, refuse } from './streams.ts';

export interface HandlerDeps {
  /** Returns the worker of a pod, by its uid. */
  worker(uid: string): PodWorker | undefined;
  folders: PodFolders;
  pipes: PipeFactory;
  keeper: string | undefined;
  now(): number;
}

function badRequest(message: string): ApiError {
  return new ApiError({ code: 400, reason: 'BadRequest', message });
}

/** Returns the requested container, as the real API server selects it. */
function containerName(pod: PodObject, asked: string | null): string {
  const names = pod.spec.containers.map((container) => container.name);
  if (asked) {
    if (names.includes(asked)) return asked;
    throw badRequest(`container ${asked} is not valid for pod ${pod.metadata.name}`);
  }
  if (names.length === 1) return names[0]!;
  throw badRequest(
    `a container name must be specified for pod ${pod.metadata.name}, choose one of: [${names.join(' ')}]`,
  );
}

function count(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  if (!/^\d+$/.test(text)) throw badRequest(`${name}: invalid value "${text}": must be a whole number of at least 0`);
  return Number(text);
}

function logOptions(query: URLSearchParams, now: number): LogOptions {
  const sinceSeconds = count(query, 'sinceSeconds');
  const sinceTime = query.get('sinceTime');
  const since = sinceTime === null ? undefined : Date.parse(sinceTime);
  if (Number.isNaN(since)) throw badRequest(`sinceTime: invalid value "${sinceTime}": must be an RFC 3339 time`);
  return {
    follow: isTrue(query.get('follow')),
    timestamps: isTrue(query.get('timestamps')),
    tailLines: count(query, 'tailLines'),
    limitBytes: count(query, 'limitBytes'),
    since: sinceSeconds === undefined ? since : now - sinceSeconds * 1_000,
  };
}

/** Returns the number of the run whose log is requested. */
function logRun(pod: PodObject, loop: ContainerLoop, previous: boolean): number {
  const { name, restartCount, state, lastState } = loop.view;
  if (previous) {
    // While the next run waits, the number is still that of the last one.
    if (lastState.terminated) return state.waiting ? restartCount : restartCount - 1;
    throw badRequest(`previous terminated container "${name}" in pod "${pod.metadata.name}" not found`);
  }
  if (state.waiting && !lastState.terminated) {
    const { reason, message } = state.waiting;
    const why = message && reason !== 'ContainerCreating' ? `${reason}: ${message}` : reason;
    throw badRequest(`container "${name}" in pod "${pod.metadata.name}" is waiting to start: ${why}`);
  }
  return restartCount;
}

export function podHandlers(deps: HandlerDeps): PodHandlers {
  const find = (pod: PodObject, query: URLSearchParams) => {
    if (!pod.spec.nodeName) throw badRequest(`pod ${pod.metadata.name} does not have a host assigned`);
    const name = containerName(pod, query.get('container'));
    return { name, loop: deps.worker(pod.metadata.uid)?.loops.find((candidate) => candidate.spec.name === name) };
  };

  return {
    async log(pod, query, res, signal) {
      const { name, loop } = find(pod, query);
      if (!loop)
        throw badRequest(`container "${name}" in pod "${pod.metadata.name}" is waiting to start: ContainerCreating`);
      const run = logRun(pod, loop, isTrue(query.get('previous')));
      const options = logOptions(query, deps.now());
      const path = deps.folders.log(pod.metadata.uid, name, run);
      const live = loop.current?.log.path === path ? loop.current.log : undefined;
      await sendLog(res, readLog(path, live, options, signal), signal);
    },

    stream(kind, pod, query, upgrade: Upgrade) {
      const { name, loop } = find(pod, query);
      if (!speaksProtocol(upgrade.req)) {
        throw badRequest('Sec-WebSocket-Protocol: must offer v5.channel.k8s.io or v4.channel.k8s.io');
      }
      if (isTrue(query.get('tty'))) checkTerminal(kind, deps.keeper);
      if (kind === 'exec' && query.getAll('command').length === 0) throw badRequest('command: required');
      const container = loop?.current;
      // The real API server accepts the connection first and then reports the failed connection to the kubelet over it.
      if (!loop || !container?.running) {
        const status = internalError(`unable to upgrade connection: container not found ("${name}")`);
        refuse(upgrade, query, status);
      } else if (kind === 'attach') attach(upgrade, query, container, loop.spec.stdinOnce === true);
      else exec(upgrade, query, container, deps);
    },
  };
}

/** Refuses a terminal that the embedded cluster cannot make. */
function checkTerminal(kind: 'attach' | 'exec', keeper: string | undefined): void {
  if (kind === 'attach')
    throw badRequest('tty: containers of the embedded cluster have no terminal; leave it out (-t)');
  if (!keeper || !existsSync(keeper)) {
    const where = keeper ? `, which is not at ${keeper}` : '';
    throw badRequest(
      `tty: a terminal needs Berth's keeper${where}; build it with make keeper, on Linux, or leave tty out (-t)`,
    );
  }
}

async function sendLog(res: ServerResponse, pieces: AsyncGenerator<Buffer>, signal: AbortSignal): Promise<void> {
  const first = await pieces.next();
  res.writeHead(200, { 'content-type': 'text/plain' });
  res.flushHeaders();
  const all = async function* () {
    if (!first.done) yield first.value;
    yield* pieces;
  };
  try {
    await pipeline(Readable.from(all()), res, { signal });
  } catch (error) {
    // The client has gone, or the server closes.
    if (!signal.aborted && !res.destroyed) throw error;
    res.destroy();
  }
}
