import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, onTestFinished, test } from 'vitest';
import type { KubeCluster } from '../../../../cli/cluster/cluster.ts';
import { Forwarded } from '../../../../cli/enter/forward.ts';
import { podPorts } from '../../../../cli/enter/pod-ports.ts';
import { MAX_PORT_CONNECTIONS } from '../../../../core/enter/frames.ts';
import { systemClock } from '../../../../core/system.ts';
import { eventually } from '../../../support/eventually.ts';
import { noHelper } from '../../../support/helper-run.ts';
import { echo, PortedPod } from '../../../support/ported.ts';
import { skipIf } from '../../../support/requires.ts';

/** Forwards ports of this machine to those of the pod, until the end of the test. */
async function forwarding(pod: PortedPod) {
  const problems: [number, Error][] = [];
  const abort = new AbortController();
  const ports = await podPorts(
    pod.session,
    { api: pod } as unknown as KubeCluster,
    { clock: systemClock },
    abort.signal,
  );
  const forwarded = new Forwarded(ports, (remote, error) => problems.push([remote, error as Error]));
  onTestFinished(() => {
    forwarded[Symbol.dispose]();
    abort.abort();
  });
  const listen = async (remote: number) => {
    const [end = ''] = await forwarded.listen(['127.0.0.1'], { local: 0, remote });
    return Number(end.split(':')[1]);
  };
  return { forwarded, listen, problems };
}

function dial(port: number): Socket {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  onTestFinished(() => void socket.destroy());
  return socket.on('error', () => {});
}

const failure = async (socket: Socket): Promise<string> => {
  const [error] = await once(socket, 'error');
  return error.code;
};

describe('forwarded ports', skipIf(noHelper), () => {
  test('that lose their exec reset its connections, say one reason, and go on with a new exec', async () => {
    await using pod = await PortedPod.start();
    const { listen, problems } = await forwarding(pod);
    const port = await listen(await pod.serve(echo));
    const sockets = [dial(port), dial(port)];
    const resets = sockets.map(failure);
    for (const socket of sockets) {
      socket.write('x');
      await once(socket, 'data');
    }
    assert.equal(pod.helpers.length, 1);
    pod.helpers[0]?.kill('SIGKILL');
    assert.deepEqual(await Promise.all(resets), ['ECONNRESET', 'ECONNRESET']);
    assert.match(problems[0]?.[1].message ?? '', /the connection to session notes was lost/);
    assert.equal(new Set(problems.map(([, error]) => error)).size, 1);
    const again = dial(port);
    again.end('still here');
    assert.equal(await text(again), 'still here');
    assert.equal(pod.helpers.length, 2);
  });

  test('of a pod that cannot be entered are refused with the reason before anything listens', async () => {
    await using pod = await PortedPod.start();
    pod.state.access = 'Suspended';
    await assert.rejects(forwarding(pod), /session notes is being suspended/);
  });

  test('take more connections than one exec has, with another exec', async () => {
    await using pod = await PortedPod.start();
    const { listen, problems } = await forwarding(pod);
    const port = await listen(await pod.serve(echo));
    const sockets = Array.from({ length: MAX_PORT_CONNECTIONS + 10 }, () => dial(port));
    await Promise.all(
      sockets.map(async (socket) => {
        socket.write('x');
        await once(socket, 'data');
      }),
    );
    assert.equal(pod.helpers.length, 2);
    assert.deepEqual(problems, []);
  });

  test('reset the server’s side of a client that leaves, and say nothing of it', async () => {
    await using pod = await PortedPod.start();
    const { listen, problems } = await forwarding(pod);
    const got: Socket[] = [];
    const port = await listen(await pod.serve((socket) => void got.push(socket)));
    const socket = dial(port);
    socket.write('half');
    const remote = await eventually(() => got[0], { what: 'the connection' });
    const reset = failure(remote);
    socket.resetAndDestroy();
    assert.equal(await reset, 'ECONNRESET');
    assert.deepEqual(problems, []);
  });

  test('of an address that is in use or is none of this machine are refused, and nothing listens then', async () => {
    await using pod = await PortedPod.start();
    const { forwarded, listen } = await forwarding(pod);
    const taken = await listen(1);
    const listening = (addresses: string[]) => forwarded.listen(addresses, { local: taken, remote: 1 });
    await assert.rejects(
      listening(['127.0.0.2', '127.0.0.1']),
      /port \d+ of 127\.0\.0\.1 is in use by another program/,
    );
    await assert.rejects(listening(['192.0.2.1']), /192\.0\.2\.1 is no address of this machine/);
    assert.deepEqual(await listening(['127.0.0.2']), [`127.0.0.2:${taken}`]);
  });
});
