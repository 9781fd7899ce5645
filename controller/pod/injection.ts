import type { Container, Pod } from '../../core/kube/builtin.ts';
import { NODE_FLAGS } from '../../core/node-flags.ts';
import { BRINGER, INJECTOR, RUNNER_DIRECTORY } from '../../core/resources/names.ts';

const VOLUME = 'runner';
const LIBRARIES = `${RUNNER_DIRECTORY}/lib`;

/**
 * Node by the loader and the libraries that came with it, whatever the image has. The loader can be run but not read by
 * the pod's user: the kernel gives the process's memory, environment and descriptors to root. It passes nothing on by the
 * environment.
 */
const COMMAND = [
  `${LIBRARIES}/ld.so`,
  // The image's own ld.so.cache names libraries of another libc.
  '--inhibit-cache',
  '--library-path',
  LIBRARIES,
  `${RUNNER_DIRECTORY}/node`,
  ...NODE_FLAGS,
  `${RUNNER_DIRECTORY}/runner.cjs`,
];

/** What an image's own environment could make the loader or Node load; the agent gets nothing of it either way. */
const NEUTRAL = ['LD_PRELOAD', 'LD_AUDIT', 'NODE_OPTIONS'].map((name) => ({ name, value: '' }));

/**
 * The pod with the runner of `runnerImage` brought into its image: an init container of another user copies it into a
 * volume that the session's container has read-only. It asks for what the session asks for, which leaves the pod's sum.
 */
export function withRunner(pod: Pod, runnerImage: string): Pod {
  const [session, ...others] = pod.spec.containers as [Container, ...Container[]];
  const injector: Container = {
    name: BRINGER,
    image: runnerImage,
    command: ['/opt/berth/inject', RUNNER_DIRECTORY],
    ...(session.resources ? { resources: session.resources } : {}),
    securityContext: { ...session.securityContext, runAsUser: INJECTOR, runAsGroup: INJECTOR },
    volumeMounts: [{ name: VOLUME, mountPath: RUNNER_DIRECTORY }],
  };
  return {
    ...pod,
    spec: {
      ...pod.spec,
      initContainers: [injector],
      containers: [
        {
          ...session,
          command: COMMAND,
          // The image's may be closed to the pod's user, and then the container would not start.
          workingDir: '/',
          env: [...NEUTRAL, ...(session.env ?? [])],
          volumeMounts: [
            ...(session.volumeMounts ?? []),
            { name: VOLUME, mountPath: RUNNER_DIRECTORY, readOnly: true },
          ],
        },
        ...others,
      ],
      volumes: [...(pod.spec.volumes ?? []), { name: VOLUME, emptyDir: {} }],
    },
  };
}
