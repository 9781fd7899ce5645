import type { Artifact } from '../resources/turn.ts';

/** An artifact without its place in the store. */
export type ShownArtifact = Omit<Artifact, 'ref' | 'offset'>;

export const shownArtifact = ({ ref: _ref, offset: _offset, ...shown }: Artifact): ShownArtifact => shown;
