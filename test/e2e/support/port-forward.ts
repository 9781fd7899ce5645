/** Ports of this machine that lead into the cluster. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { tools } from '../../support/tools.ts';
import { checkout, release, releaseNamespace } from './cluster.ts';

export interface PortForward {
  port: number;
  end: () => void;
}

/** Forwards a port of this machine to a port of the API's Service. */
export async function portForward(to: number): Promise<PortForward> {
  const { kubectl } = await tools();
  return listening(kubectl, ['port-forward', '-n', releaseNamespace, `service/${release}-api`, `:${to}`]);
}

/** Forwards a port of this machine to a port of a pod. */
export async function podPort(namespace: string, pod: string, to: number): Promise<PortForward> {
  const { kubectl } = await tools();
  return listening(kubectl, ['port-forward', '-n', namespace, pod, `:${to}`]);
}

/** Forwards a port of this machine to a port of a session, by the CLI. */
export function sessionPort(namespace: string, session: string, to: number, ...flags: string[]): Promise<PortForward> {
  return listening(join(checkout, 'bin/berth'), ['port-forward', '-n', namespace, session, `:${to}`, ...flags]);
}

/** Starts a program that forwards a port, and resolves once it has said which it is. */
export async function listening(program: string, args: string[]): Promise<PortForward> {
  const forward = spawn(program, args);
  const port = await new Promise<number>((resolve, reject) => {
    let text = '';
    for (const stream of [forward.stdout, forward.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
        const port = /127\.0\.0\.1:(\d+)/.exec(text)?.[1];
        if (port) resolve(Number(port));
      });
    }
    forward.once('exit', (code) => reject(new Error(`port-forward ended with ${code}: ${text}`)));
  });
  return { port, end: () => void forward.kill() };
}
