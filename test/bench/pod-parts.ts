/** Start times of pods like that of `F-container`, each of which differs from it in one part that a session's pod has. */
import type { Pod } from '../../core/kube/builtin.ts';
import { compared, type Figure } from './figures.ts';
import type { Ground } from './ground.ts';
import { count } from './settings.ts';

const SAMPLES = count(30, 2);

/** Gives a pod this number of `emptyDir` volumes. */
const withVolumes = (volumes: number) => (pod: Pod) => {
  const names = Array.from({ length: volumes }, (_, i) => `volume-${i}`);
  pod.spec.volumes = names.map((name) => ({ name, emptyDir: {} }));
  for (const container of pod.spec.containers) {
    container.volumeMounts = names.map((name) => ({ name, mountPath: `/${name}` }));
  }
};

const PARTS: Readonly<Record<string, (pod: Pod) => void>> = {
  'with one emptyDir': withVolumes(1),
  'with two emptyDirs': withVolumes(2),
  'without a seccomp profile': ({ spec }) => {
    spec.securityContext = { ...spec.securityContext, seccompProfile: { type: 'Unconfined' } };
  },
  'without requests and limits': ({ spec }) => {
    for (const container of spec.containers) container.resources = {};
  },
  'with a writable root': ({ spec }) => {
    for (const container of spec.containers) {
      container.securityContext = { ...container.securityContext, readOnlyRootFilesystem: false };
    }
  },
};

/** Starts of `F-container` and of pods that differ from it in one part, by turns. */
export async function podParts({ floors }: Ground): Promise<Figure[]> {
  const whole: number[] = [];
  const values = Object.keys(PARTS).map((): number[] => []);
  for (let i = 0; i < SAMPLES; i++) {
    whole.push(await floors.container());
    for (const [at, change] of Object.values(PARTS).entries()) values[at]?.push(await floors.container(change));
  }
  const beside = { what: 'F-container', values: whole };
  return Object.keys(PARTS).map((part, at) => compared(`F-container ${part}`, values[at] ?? [], beside));
}
