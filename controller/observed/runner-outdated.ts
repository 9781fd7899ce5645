import { understand } from '../../core/frames/messages.ts';
import type { World } from './world.ts';

/**
 * Reports whether the pod's runner is bound and speaks a protocol version that this controller does not understand: a
 * controller of another release has bound it. The version comes from `ready`, which is not sealed, so it counts only once
 * a frame of the same runner has opened.
 */
export function isRunnerOutdated({ link, installation }: Pick<World, 'link' | 'installation'>): boolean {
  return link?.phase === 'Bound' && link.protocol !== undefined && !understand(link.protocol, installation.protocol);
}
