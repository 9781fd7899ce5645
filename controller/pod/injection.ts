import type { Container, Pod } from '../../core/kube/builtin.ts';
import { NODE_FLAGS } from '../../core/program/node-flags.ts';
import {
  BUILD_CACHE_DIRECTORY,
  BUILDER,
  BUILDER_DIRECTORY,
  INJECTOR_CONTAINER,
  INJECTOR_UID,
  RUNNER_DIRECTORY,
} from '../../core/resources/names.ts';
import { scratchVolume } from './volumes.ts';

const VOLUME = 'runner';
const LIBRARIES = `${RUNNER_DIRECTORY}/lib`;

/**
 * Starts Node with the loader and libraries copied with it, instead of those of the image. The pod's user can run the loader
 * but not read it, so the kernel gives the process's memory, environment and descriptors to root. Nothing is passed on
 * through the environment.
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

/**
 * Variables by which an image's environment could make the loader or Node load code; set empty, and the agent gets none
 * of them.
 */
const NEUTRAL = ['LD_PRELOAD', 'LD_AUDIT', 'NODE_OPTIONS'].map((name) => ({ name, value: '' }));

/**
 * Adds the runner of `runnerImage` to the pod: an init container with another user copies it into a volume that the
 * session's container mounts read-only. The init container requests what the session's does, which leaves the pod's
 * total unchanged.
 */
export function withRunner(pod: Pod, runnerImage: string): Pod {
  const [session, ...others] = pod.spec.containers as [Container, ...Container[]];
  const injector: Container = {
    name: INJECTOR_CONTAINER,
    image: runnerImage,
    command: ['/opt/berth/inject', RUNNER_DIRECTORY],
    ...(session.resources ? { resources: session.resources } : {}),
    securityContext: { ...session.securityContext, runAsUser: INJECTOR_UID, runAsGroup: INJECTOR_UID },
    volumeMounts: [{ name: VOLUME, mountPath: RUNNER_DIRECTORY }],
  };
  return {
    ...pod,
    spec: {
      ...pod.spec,
      initContainers: [...(pod.spec.initContainers ?? []), injector],
      containers: [
        {
          ...session,
          command: COMMAND,
          // The image's own working directory may be closed to the pod's user; the container would not start then.
          workingDir: '/',
          env: [...NEUTRAL, ...(session.env ?? [])],
          volumeMounts: [
            ...(session.volumeMounts ?? []),
            { name: VOLUME, mountPath: RUNNER_DIRECTORY, readOnly: true },
          ],
        },
        ...others,
      ],
      volumes: [...(pod.spec.volumes ?? []), scratchVolume(VOLUME, session.resources)],
    },
  };
}

/** Volume with uv's cache. */
const CACHE = 'cache';

/**
 * Adds uv and Berth's builder, copied out of the runner image with Python, to the pod of a build, and the volume of this
 * claim as uv's cache.
 */
export function withBuilder(pod: Pod, image: string, cache: string | undefined): Pod {
  const [session, ...others] = pod.spec.containers as [Container, ...Container[]];
  const bringer: Container = {
    name: BUILDER,
    image,
    command: ['/opt/berth/uv/bring', BUILDER_DIRECTORY],
    ...(session.resources ? { resources: session.resources } : {}),
    ...(session.securityContext ? { securityContext: session.securityContext } : {}),
    volumeMounts: [{ name: BUILDER, mountPath: BUILDER_DIRECTORY }],
  };
  const mounts = [
    { name: BUILDER, mountPath: BUILDER_DIRECTORY, readOnly: true },
    ...(cache ? [{ name: CACHE, mountPath: BUILD_CACHE_DIRECTORY }] : []),
  ];
  const volumes = [
    scratchVolume(BUILDER, session.resources),
    ...(cache ? [{ name: CACHE, persistentVolumeClaim: { claimName: cache } }] : []),
  ];
  return {
    ...pod,
    spec: {
      ...pod.spec,
      initContainers: [...(pod.spec.initContainers ?? []), bringer],
      containers: [{ ...session, volumeMounts: [...(session.volumeMounts ?? []), ...mounts] }, ...others],
      volumes: [...(pod.spec.volumes ?? []), ...volumes],
    },
  };
}
