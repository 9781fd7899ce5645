#!/usr/bin/env node
/**
 * The runner: PID 1 of a session pod, or a plain process of the embedded cluster. stdin carries control lines, stdout
 * carries frames and nothing else, stderr carries the agent's readable text. An end of stdin means that an attach
 * closed; another one follows.
 */
import { constants } from 'node:os';
import { dirname } from 'node:path';
import { type Bind, type Bye, PROTOCOL_VERSION } from '../core/frames/messages.ts';
import { systemClock, systemRandom } from '../core/system.ts';
import { answerFor, answerForCommands } from './agent-socket/answer.ts';
import { listenForAgent } from './agent-socket/socket.ts';
import { together } from './drivers/drain.ts';
import { Transfers } from './enter/files.ts';
import { type Door, listenForHelpers } from './enter/listen.ts';
import { Ports } from './enter/ports.ts';
import { rootsOf } from './enter/roots.ts';
import { Uploads } from './enter/uploads.ts';
import { ContainerMemory } from './limits/container-memory.ts';
import { TreeMemory } from './limits/tree-memory.ts';
import { findContainment, findTools } from './process/find.ts';
import { Runner } from './runner.ts';
import { partsFor, type Surroundings } from './session/parts.ts';
import { loadAddon } from './signals/addon.ts';
import { commandSocketPath, directoriesUnder, located, makeDirectories, socketPath } from './system/directories.ts';
import { protect } from './system/hardening.ts';
import { inputFirst } from './system/timers.ts';
import { Pressure } from './text/pressure.ts';
import { TextSink } from './text/sink.ts';
import { warmUpSession } from './warm-up/session.ts';
import { WarmUp } from './warm-up/warm-up.ts';

/**
 * Grace time of the agent after a signal, milliseconds. A kubelet that stops the pod gives it ten seconds
 * (terminationGracePeriodSeconds).
 */
const SIGNAL_GRACE_MS = 4000;
/** Time after the agent's grace to kill, pack the state and write the remaining frames, milliseconds. */
const EXIT_MS = 4000;
const FLUSH_MS = 1000;

/** Takes the environment out of `process.env`, which nothing reads again: it holds the session's Secrets. */
function takeEnvironment(): Record<string, string | undefined> {
  const taken = { ...process.env };
  for (const name of Object.keys(taken)) delete process.env[name];
  return taken;
}

function start(): void {
  const environment = takeEnvironment();
  const clock = inputFirst(systemClock);
  const directories = directoriesUnder(environment.BERTH_LOCAL_ROOT);
  makeDirectories(directories);
  const here = dirname(process.argv[1] ?? '');
  const { containment, start: startProcess } = findContainment(environment.BERTH_KEEPER, here, clock);
  // Several runners of one machine share its cgroup.
  const isLocal = environment.BERTH_LOCAL_ROOT !== undefined;
  const addon = loadAddon(here);
  const isProtected = protect(containment, addon);
  const text = new TextSink(process.stderr, clock);
  const frames = new Pressure(clock);
  const memory = isLocal ? TreeMemory.within(environment.BERTH_LOCAL_MEMORY) : ContainerMemory.find();

  const surroundings: Surroundings = {
    environment,
    directories,
    tools: findTools(here),
    containment,
    startProcess,
    memory,
    flow: together(text.pressure, frames),
    isProtected,
    clock,
    random: systemRandom,
  };
  const warmUp = new WarmUp(clock, (signal) => warmUpSession(surroundings, signal));
  // The session's parts are made once a bind is accepted. Nothing of the warm-up is left when the first process starts.
  const makeParts = (bind: Bind) => partsFor(bind, surroundings, warmUp.end());

  const runner = new Runner({
    podUID: environment.BERTH_POD_UID ?? '',
    protocol: PROTOCOL_VERSION,
    clock,
    random: systemRandom,
    writeFrames: (text) => {
      const taken = process.stdout.write(text);
      if (!taken) frames.hold();
      return taken;
    },
    writeText: (line) => text.write(line),
    partsFor: makeParts,
    onSession: (session, secrets) => {
      for (const [path, answer] of [
        [socketPath(directories), answerFor(session)],
        [commandSocketPath(directories), answerForCommands(session)],
      ] as const) {
        listenForAgent(path, secrets, answer).catch((error: Error) => {
          text.write(`[berth: BERTH_SOCKET cannot be had: ${error.message}]\n`);
        });
      }
      // Elsewhere helpers could not be told from the agent's processes; on the embedded cluster they need not be.
      const peerPid = process.pid === 1 ? addon?.peerPid : undefined;
      if (process.platform !== 'linux' || !(peerPid || (isLocal && process.pid !== 1))) return;
      const roots = rootsOf(session.bind, directories, environment.BERTH_LOCAL_ROOT);
      const mountPath = session.bind.workspace?.mountPath;
      const uploads = new Uploads({
        session,
        stateDirectory: directories.state,
        volume: mountPath && located(mountPath, mountPath, environment.BERTH_LOCAL_ROOT),
        clock,
        random: systemRandom,
      });
      const transfers = new Transfers(roots, uploads, clock);
      session.keptBusyBy(transfers);
      const files: Door = (visit) => transfers.serve(visit);
      const ports = new Ports(clock);
      session.keptBusyBy(ports);
      const command: Door = (visit) => session.commands.serve(visit);
      listenForHelpers({
        podUID: environment.BERTH_POD_UID ?? '',
        session,
        peerPid,
        doors: { command, commands: command, signal: command, files, ports: (visit) => ports.serve(visit) },
        clock,
        onTaken: () => {
          session.closedToClients = true;
          text.write('[berth: nobody can work inside this session: another process has the name of its socket]\n');
        },
      }).then(
        () => {
          session.closedToClients = false;
        },
        (error: Error) => text.write(`[berth: nobody can work inside this session: ${error.message}]\n`),
      );
    },
  });
  process.stdout.on('drain', () => frames.release(() => runner.drained()));
  // The error is ignored because nobody reads any more; frames that matter are held until they are acknowledged.
  process.stdout.on('error', () => {});
  process.stdin.on('error', () => {});
  process.stdin.on('data', (chunk: Buffer) => {
    runner.push(chunk);
    warmUp.heard();
  });
  // The timer keeps the process alive after an end of stdin.
  setInterval(() => {}, 2 ** 30);

  let ending = false;
  const end = (reason: Bye['reason'], message: string, graceMs: number, code: number) => {
    if (ending) return;
    ending = true;
    setTimeout(() => process.exit(code), graceMs + EXIT_MS);
    runner
      .stop(reason, message, graceMs)
      .then(flushed)
      .finally(() => process.exit(code));
  };
  // An exit with 0 would make the pod Succeeded. A kubelet that evicts a pod makes it Failed with the reason, and drops the
  // reason if the containers say otherwise (pkg/kubelet/kubelet_pods.go: generateAPIPodStatus).
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    const code = 128 + constants.signals[signal];
    process.on(signal, () => end('Signal', `the runner was ended by ${signal}`, SIGNAL_GRACE_MS, code));
  }
  runner.onShutdown((graceMs) => end('Shutdown', 'the controller asked for the end', graceMs, 0));
  process.on('uncaughtException', (error) => {
    // The stack is written without the message, which can contain any text.
    text.write(`[berth: the runner failed]\n${error.stack?.split('\n').slice(1).join('\n') ?? ''}\n`);
    end('Fault', `the runner failed: ${error.name}`, 0, 1);
  });
}

/** Waits until stdout has taken everything, as long as somebody reads it. What clients are told leaves with this turn of the event loop. */
async function flushed(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
  const deadline = systemClock.monotonic() + FLUSH_MS;
  while (process.stdout.writableLength > 0 && systemClock.monotonic() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

try {
  start();
} catch (error) {
  process.stderr.write(`[berth: the runner cannot start: ${(error as Error).message}]\n`);
  process.exit(1);
}
