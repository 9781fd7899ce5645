import type { SessionClassSpec } from '../../core/resources/sessionclass.ts';
import type { CachedSession, Installation, Problem } from '../observed/world.ts';

/** Image of a session's container, and how the runner gets into it. */
export interface ImageSettings {
  runner: SessionClassSpec['runner'];
  image: string;
  /** Markers before and after a result in the output of a runnerless pod. */
  markers: { start: string; end: string };
  /** The installation's runner image, from which Injected copies the runner. */
  runnerImage: string;
  /** Image from which uv is copied; undefined if pods use the machine's uv, or the installation has none. */
  builderImage: string | undefined;
}

export const DEFAULT_MARKERS = { start: '<<<BERTH_RESULT_START>>>', end: '<<<BERTH_RESULT_END>>>' };

/** The session's image, or the problem with it. Only Embedded has a default image, the one with the runner. */
export function imageSettings(
  { image: own }: Pick<CachedSession['spec'], 'image'>,
  { runner, image: given, runnerImage: variant, resultMarkers: markers = DEFAULT_MARKERS }: SessionClassSpec,
  { runnerImage, pythonRunnerImage, imagesArePrograms }: Installation,
): ImageSettings | Problem {
  const common = { runnerImage, markers, builderImage: imagesArePrograms ? undefined : pythonRunnerImage };
  const image = own ?? given ?? (variant === 'Python' ? pythonRunnerImage : undefined);
  if (runner === 'Embedded' && !image && variant === 'Python') {
    return {
      reason: 'ClassInvalid',
      message:
        'spec.runnerImage of the SessionClass: this installation has no runner image with Python; set BERTH_PYTHON_RUNNER_IMAGE of the controller, or spec.image of the class',
    };
  }
  if (runner === 'Embedded') return { ...common, runner, image: image ?? runnerImage };
  if (!image) {
    return {
      reason: 'ClassInvalid',
      message: `spec.image of the SessionClass: is not set, and with runner ${runner} there is no default; set the image of the agent`,
    };
  }
  // Pods that are processes of this machine run its own programs and no image.
  if (runner === 'Injected' && imagesArePrograms) return { ...common, runner: 'Embedded', image: runnerImage };
  return { ...common, runner, image };
}
