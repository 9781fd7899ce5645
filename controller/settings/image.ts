import type { SessionClassSpec } from '../../core/resources/sessionclass.ts';
import type { CachedSession, Installation, Problem } from '../world/world.ts';

/** What a session's container runs from, and who talks to its agent. */
export interface ImageSettings {
  runner: SessionClassSpec['runner'];
  image: string;
  /** What stands before and after a result, where the runner does not say so. */
  markers: { start: string; end: string };
  /** The installation's own: where Injected takes the runner from. */
  runnerImage: string;
}

export const DEFAULT_MARKERS = { start: '<<<BERTH_RESULT_START>>>', end: '<<<BERTH_RESULT_END>>>' };

/** The image of the session, or what is wrong with it: only one that contains the runner has a default. */
export function imageSettings(
  { image: own }: CachedSession['spec'],
  { runner, image: given, resultMarkers: markers = DEFAULT_MARKERS }: SessionClassSpec,
  { runnerImage, imagesArePrograms }: Installation,
): ImageSettings | Problem {
  const image = own ?? given;
  if (runner === 'Embedded') return { runner, image: image ?? runnerImage, runnerImage, markers };
  if (!image) {
    return {
      reason: 'ClassInvalid',
      message: `spec.image of the SessionClass: is not set, and with runner ${runner} there is no default; set the image of the agent`,
    };
  }
  // The programs of this machine are what an image would have.
  if (runner === 'Injected' && imagesArePrograms)
    return { runner: 'Embedded', image: runnerImage, runnerImage, markers };
  return { runner, image, runnerImage, markers };
}
