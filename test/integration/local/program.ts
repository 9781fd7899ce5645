/** Runs the program `local` as a person would, in a home of its own. */

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Kubeconfig } from '../../../local/apiserver/types.ts';
import type { PodObject, PodStatus } from '../../../local/kubelet/types.ts';
import { eventually } from '../../support/eventually.ts';
import { processesWith } from '../../support/processes.ts';
import { RawApi } from '../../support/raw-api.ts';

const MAIN = join(import.meta.dirname, '..', '..', '..', 'local', 'main.ts');

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

export class LocalProgram {
  readonly home = mkdtempSync(join(tmpdir(), 'berth-local-'));
  #api: RawApi | undefined;

  /** Starts it without waiting. */
  start(...args: string[]): { child: ChildProcess; ended: Promise<Ended>; stdout: () => string } {
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', MAIN, ...args], {
      env: { ...process.env, BERTH_HOME: this.home },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (piece: string) => {
      stdout += piece;
    });
    child.stderr.setEncoding('utf8').on('data', (piece: string) => {
      stderr += piece;
    });
    const ended = new Promise<Ended>((resolve) => child.once('close', (code) => resolve({ code, stdout, stderr })));
    return { child, ended, stdout: () => stdout };
  }

  run(...args: string[]): Promise<Ended> {
    return this.start(...args).ended;
  }

  /** Resolves to what `status` prints. */
  async status(): Promise<{
    pid: number;
    url: string;
    apiUrl: string;
    apiTokenFile: string;
    metricsUrl: string;
    startedAt: string;
  }> {
    return JSON.parse((await this.run('status', '-o', 'json')).stdout);
  }

  /** The API as the kubeconfig now says. */
  async api(): Promise<RawApi> {
    await this.#api?.close();
    const config = JSON.parse(readFileSync(join(this.home, 'kubeconfig'), 'utf8')) as Kubeconfig;
    const { server, 'certificate-authority-data': ca } = config.clusters[0]!.cluster;
    this.#api = new RawApi({
      url: server,
      ca: Buffer.from(ca, 'base64').toString(),
      token: config.users[0]!.user.token,
    });
    return this.#api;
  }

  /** A pod that runs the script by a shell, once it runs. */
  async pod(name: string, script: string): Promise<void> {
    const api = await this.api();
    const object: PodObject = {
      metadata: { name, namespace: 'default' },
      spec: {
        restartPolicy: 'Never',
        containers: [{ name: 'main', image: 'berth.local/runner', command: ['/bin/sh', '-c', script] }],
      },
    };
    const made = await api.post('/api/v1/namespaces/default/pods', object);
    if (made.status !== 201) throw new Error(made.text);
    await eventually(async () => (await this.podStatus(name)).phase === 'Running');
  }

  async podStatus(name: string): Promise<PodStatus> {
    return (await this.#api!.get(`/api/v1/namespaces/default/pods/${name}`)).body.status;
  }

  async podLog(name: string): Promise<string> {
    return (await this.#api!.get(`/api/v1/namespaces/default/pods/${name}/log`)).text;
  }

  /** Pids of everything that belongs to this home. */
  processes(): number[] {
    return processesWith(this.home).filter((pid) => pid !== process.pid);
  }

  async remove(): Promise<void> {
    await this.run('down');
    await this.#api?.close();
    // Processes that have just been ended may still write.
    rmSync(this.home, { recursive: true, force: true, maxRetries: 10 });
  }
}
