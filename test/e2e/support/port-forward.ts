/** A port of this machine that leads to the API's Service. */
import { spawn } from 'node:child_process';
import { tools } from '../../support/tools.ts';
import { release, releaseNamespace } from './cluster.ts';

export interface PortForward {
  port: number;
  end: () => void;
}

/** Forwards a port of this machine to a port of the API's Service. */
export async function portForward(to: number): Promise<PortForward> {
  const { kubectl: program } = await tools();
  const forward = spawn(program, ['port-forward', '-n', releaseNamespace, `service/${release}-api`, `:${to}`]);
  const port = await new Promise<number>((resolve, reject) => {
    let text = '';
    forward.stdout.on('data', (chunk) => {
      text += chunk;
      const port = /127\.0\.0\.1:(\d+)/.exec(text)?.[1];
      if (port) resolve(Number(port));
    });
    forward.once('exit', (code) => reject(new Error(`port-forward ended with ${code}: ${text}`)));
  });
  return { port, end: () => void forward.kill() };
}
