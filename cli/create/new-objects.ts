import type { EnvironmentSpec } from '../../core/resources/environment.ts';
import type { StoredSession } from '../../core/resources/kinds.ts';
import type { SessionSpec } from '../../core/resources/session.ts';
import type { TurnSpec } from '../../core/resources/turn.ts';

/** Spec of a new session, and the Environment that it names and that may have to be created first. */
export interface SpecWithEnvironment {
  spec: SessionSpec;
  environment?: { name: string; spec: EnvironmentSpec };
}

/** Labels and annotations that a manifest gives its object. */
export interface GivenMetadata {
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
}

export interface NewSession extends SpecWithEnvironment {
  name: string;
  /** Metadata of a manifest or of flags. Where it is set, a field that no Session has is refused. */
  metadata?: GivenMetadata | undefined;
  /** The packed files of its agent. */
  archive?: Buffer | undefined;
}

export interface NewTurn {
  name: string;
  /** Metadata of a manifest, as in `NewSession`. */
  metadata?: GivenMetadata | undefined;
  spec: Omit<TurnSpec, 'session' | 'cancel'> & { cancel?: boolean };
}

export type DryRun = 'client' | 'server';

/** Objects that a command would create; `existing`: the session of a turn that is created alone. */
export interface NewObjects {
  session?: NewSession;
  turn?: NewTurn | undefined;
  existing?: StoredSession;
}
